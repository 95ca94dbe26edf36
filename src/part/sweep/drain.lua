#!lua flags=no-writes
-- Counts what still has to be delivered by a part. The positions are read one page at a time.
--@keys meta log positions pending claims
--@args gen cursor
-- Returns {OK, next cursor ('0' after the last page), number of positions of the page before the tail, 1 if the part is held
--         back before its tail, number of open events}, or GONE. If a part does not have any events, all numbers are 0.
--@include ../lanes/refs.lua
local meta = redis.call('HMGET', KEY_META, 'gen', 'tail', 'hold', 'pos')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
if redis.call('XLEN', KEY_LOG) == 0 then return { 'OK', '0', 0, 0, 0 } end
local tail = tailOf(meta[2])
local page, behind = redis.call('HSCAN', KEY_POSITIONS, ARG_CURSOR, 'COUNT', 500), 0
for i = 2, #page[2], 2 do
  if page[2][i] < tail then behind = behind + 1 end
end
local held = meta[3] and (meta[4] or NO_REF) < tail and 1 or 0
return { 'OK', page[1], behind, held, redis.call('ZCARD', KEY_PENDING) + redis.call('HLEN', KEY_CLAIMS) }
