#!lua flags=no-writes
-- Returns the reasons why events have not been routed, for each hour (reasons.lua).
--@keys meta reasons
--@args gen ...
-- More: hours
-- Returns {OK, `why` of P:meta or '', for each hour its counts in P:reasons or ''}, or GONE.
local meta = redis.call('HMGET', KEY_META, 'gen', 'why')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local counts = redis.call('HMGET', KEY_REASONS, unpack(ARGV, FIRST))
for i, each in ipairs(counts) do counts[i] = each or '' end
return { 'OK', meta[2] or '', unpack(counts) }
