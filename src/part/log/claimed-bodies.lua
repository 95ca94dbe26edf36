#!lua flags=no-writes
-- Reads the bodies of claimed events which were too large to be included in the message with their claims. In the same
-- step, it checks whether the claims can still be used. From then on, the claims are as good as new ones.
--@keys meta log body subs claims off health
--@args gen dispatcher ...
-- More: (ref, lane)*, at least one. An event's claims are next to each other
-- Returns {OK, letters, (body, rest)*}, or GONE. letters: for each claim, y if it can be used, n if not (it was given
--         to another dispatcher, its event has ended, its gate was closed, its endpoint was disabled, or control data
--         is missing). body, rest: for each event, in order. Both are '' if retention removed the event, or if none of
--         its claims can be used. rest: the end of the body, from the log.
--@include ../lanes/refs.lua
--@include ../owner/ended.lua
local OPEN = 111
local meta = redis.call('HMGET', KEY_META, 'gen', 'ready')
if meta[1] and meta[1] ~= ARG_GEN then return { 'GONE' } end
local isReady = meta[2] == '1'
local lanes, slots, groups = {}, {}, {}
for i = FIRST, #ARGV, 2 do
  local lane = ARGV[i + 1]
  local n = #lanes + 1
  lanes[n], slots[n], groups[n] = lane, string.sub(lane, 1, 8), string.match(lane, '^[^%z\1]*')
end
local function readAll(key, fields)
  return redis.call('EXISTS', key) == 1 and redis.call('HMGET', key, unpack(fields)) or {}
end
local claims, rows = readAll(KEY_CLAIMS, lanes), readAll(KEY_SUBS, slots)
local healths, offs = readAll(KEY_HEALTH, slots), readAll(KEY_OFF, groups)

-- Whether an endpoint was disabled because of its answers, and not re-enabled after this (claims/health.lua).
local function isDisabled(health, row)
  local disabledMs = health and string.match(health, '^%d+ %d+ %d+ %d+ (%d+)')
  return disabledMs and tonumber(string.sub(row, 14, 26)) <= tonumber(disabledMs)
end

local function isUsable(n, ref)
  local claim, row = claims[n], rows[n]
  return isReady and claim and string.sub(claim, 2, 16) == ref and string.sub(claim, 17) == ARG_DISPATCHER and not isEnded(claim)
    and row and string.byte(row, 2) == OPEN and offs[n] ~= '1' and not isDisabled(healths[n], row)
end

local letters, refs, isWanted = {}, {}, {}
for n = 1, #lanes do
  local ref = ARGV[FIRST + 2 * n - 2]
  letters[n] = isUsable(n, ref) and 'y' or 'n'
  if refs[#refs] ~= ref then refs[#refs + 1] = ref end
  isWanted[ref] = isWanted[ref] or letters[n] == 'y'
end
local out = { 'OK', table.concat(letters) }
for _, ref in ipairs(refs) do
  local id = idOf(ref)
  local body = isWanted[ref] and redis.call('HGET', KEY_BODY, ref)
  local event = body and redis.call('XRANGE', KEY_LOG, id, id)[1]
  out[#out + 1] = body or ''
  out[#out + 1] = event and event[2][12] or ''
end
return out
