#!lua flags=no-writes
-- Reads the dispatchers that work on a part, and the due time of its next retry. Dispatchers without claims in the part use it.
--@keys ready retries
-- Returns {OK, due (ms of the part's clock) or '', (dispatcher, entry of lanes/ready.lua)*}
local out = { 'OK', redis.call('ZRANGE', KEY_RETRIES, 0, 0, 'WITHSCORES')[2] or '' }
for _, text in ipairs(redis.call('HGETALL', KEY_READY)) do out[#out + 1] = text end
return out
