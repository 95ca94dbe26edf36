-- A ref is the position of an event in the log as 15 hex characters: 11 for the ms, 4 for the sequence. Sequences from 0xffe0
-- belong to test events, which are not in the log.
local LAST_SEQUENCE = 0xffdf
local NO_REF = string.rep('0', 15)
local function msOf(ref) return tonumber(string.sub(ref, 1, 11), 16) end
local function idOf(ref) return string.format('%.0f-%d', msOf(ref), tonumber(string.sub(ref, 12), 16)) end
local function refOf(id)
  local ms, sequence = string.match(id, '^(%d+)-(%d+)$')
  return string.format('%011x%04x', tonumber(ms), tonumber(sequence))
end
-- Returns the last ref of the log: from P:meta, or from the log itself if the field is missing.
local function tailOf(tail)
  if tail then return tail end
  if redis.call('EXISTS', KEY_LOG) == 0 then return NO_REF end
  local info = redis.call('XINFO', 'STREAM', KEY_LOG)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then return refOf(info[i + 1]) end
  end
end
