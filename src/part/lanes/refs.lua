-- A ref is the position that an event has in the log. It consists of 15 hex characters, 11 of them for the milliseconds
-- and 4 for the sequence. Sequences starting with 0xffe0 are used for test events. Test events are not in the log.
local LAST_SEQUENCE = 0xffdf
local function isTestRef(ref) return string.sub(ref, 12) > 'ffdf' end
local NO_REF = string.rep('0', 15)
local function msOf(ref) return tonumber(string.sub(ref, 1, 11), 16) end
local function idOf(ref) return string.format('%d-%d', msOf(ref), tonumber(string.sub(ref, 12), 16)) end
local function refOf(id)
  local ms, sequence = string.match(id, '^(%d+)-(%d+)$')
  return string.format('%011x%04x', tonumber(ms), tonumber(sequence))
end
-- Returns the last ref in the log. It is read from P:meta. If the field is missing, it is read from the log itself.
local function tailOf(tail)
  if tail then return tail end
  if redis.call('EXISTS', KEY_LOG) == 0 then return NO_REF end
  local info = redis.call('XINFO', 'STREAM', KEY_LOG)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then return refOf(info[i + 1]) end
  end
end
