#!lua flags=allow-oom
-- Deletes the record of a subscription without an object. It is kept if the subscription is open or paused, or if it
-- was recreated.
-- KEYS  1 I:meta  2 I:s:<sub>
-- ARGV  1 fence  2 inc  3 1 to only look
-- Returns OK, BUSY, or FENCED when a newer controller leads.
local fence = redis.call('HGET', KEYS[1], 'fence')
if fence and tonumber(fence) > tonumber(ARGV[1]) then return 'FENCED' end
local s = redis.call('HMGET', KEYS[2], 'inc', 'route')
if (s[1] and s[1] ~= ARGV[2]) or s[2] == 'open' or s[2] == 'paused' then return 'BUSY' end
if ARGV[3] ~= '1' then redis.call('UNLINK', KEYS[2]) end
return 'OK'
