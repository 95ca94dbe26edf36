#!lua flags=no-writes
-- Reads which dispatchers work on a part, and when its next retry is due. Used by dispatchers that hold no claims there.
--@keys ready retries
-- Returns {OK, due (ms of the part's clock) or '', (dispatcher, entry of lanes/ready.lua)*}
local out = { 'OK', redis.call('ZRANGE', KEY_RETRIES, 0, 0, 'WITHSCORES')[2] or '' }
for _, text in ipairs(redis.call('HGETALL', KEY_READY)) do out[#out + 1] = text end
return out
