#!lua flags=no-writes
-- Counts what still has to be delivered by a part. The positions, and then the deleted subscriptions, are read one page
-- at a time.
--@keys meta log subs positions pending claims dropped
--@args gen cursor
-- Returns {OK, next cursor ('0' after the last page), number of positions of the page before the tail, 1 if the part is
--         held back before its tail, number of open events, number of those in the page that are only kept as records
--         of a deleted subscription}, or GONE. If a part does not have any events, all numbers are 0.
--@include ../lanes/refs.lua
local PAGE = 500
local meta = redis.call('HMGET', KEY_META, 'gen', 'tail', 'hold', 'pos')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
if redis.call('XLEN', KEY_LOG) == 0 then return { 'OK', '0', 0, 0, 0, 0 } end
local tail = tailOf(meta[2])
local held = meta[3] and (meta[4] or NO_REF) < tail and 1 or 0
local open = redis.call('ZCARD', KEY_PENDING) + redis.call('HLEN', KEY_CLAIMS)
local from = string.match(ARG_CURSOR, '^d(%d+)$')
if from then
  local slots, kept = redis.call('ZRANGE', KEY_DROPPED, from, from + PAGE - 1), 0
  for _, slot in ipairs(slots) do
    -- Unless the subscription was recreated in the meantime.
    if redis.call('HEXISTS', KEY_SUBS, slot) == 0 then
      kept = kept + redis.call('ZLEXCOUNT', KEY_PENDING, '[' .. slot, '(' .. slot .. '\255')
    end
  end
  return { 'OK', #slots == PAGE and 'd' .. (from + PAGE) or '0', 0, held, open, kept }
end
local page, behind = redis.call('HSCAN', KEY_POSITIONS, ARG_CURSOR, 'COUNT', PAGE), 0
for i = 2, #page[2], 2 do
  if page[2][i] < tail then behind = behind + 1 end
end
return { 'OK', page[1] == '0' and 'd0' or page[1], behind, held, open, 0 }
