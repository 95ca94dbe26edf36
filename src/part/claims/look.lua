#!lua flags=no-writes
-- Reads the dispatchers which are working on a part, and the time at which its next retry is due. This is used by
-- dispatchers that don't have any claims in this part.
--@keys ready retries
-- Returns {OK, due (ms of the part's clock) or '', (dispatcher, entry of lanes/ready.lua)*}
local out = { 'OK', redis.call('ZRANGE', KEY_RETRIES, 0, 0, 'WITHSCORES')[2] or '' }
for _, text in ipairs(redis.call('HGETALL', KEY_READY)) do out[#out + 1] = text end
return out
