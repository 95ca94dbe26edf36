#!lua flags=allow-oom
-- Removes a subscription's hash and inbox that no object owns, unless it is open, was made anew, or holds an event that
-- is younger than the retention.
-- KEYS  1 I:meta  2 I:s:<sub>  3 X:in  4.. all else that is to go
-- ARGV  1 fence  2 inc  3 nowMs  4 retentionMs  5 1 to only look
-- Returns OK, BUSY, or FENCED when a newer controller leads.
local fence = redis.call('HGET', KEYS[1], 'fence')
if fence and tonumber(fence) > tonumber(ARGV[1]) then return 'FENCED' end
local s = redis.call('HMGET', KEYS[2], 'inc', 'route')
if (s[1] and s[1] ~= ARGV[2]) or s[2] == 'open' or s[2] == 'paused' then return 'BUSY' end
local newest = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
if newest and tonumber(string.match(newest[1], '^%d+')) > tonumber(ARGV[3]) - tonumber(ARGV[4]) then return 'BUSY' end
if ARGV[5] ~= '1' then redis.call('UNLINK', unpack(KEYS, 2)) end
return 'OK'
