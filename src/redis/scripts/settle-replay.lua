#!lua flags=allow-oom
-- Ends the intent of a replay when all events have been added to the inbox and refunds the unused tokens. Each intent
-- is only ended once.
-- KEYS  1 A:meta  2 A:rp  3 A:rp:<name>
-- ARGV  1 nowMs  2 ttlMs of what is kept of it  3 name (integration/id)  4 events taken  5 tokens to refund  6.. fields
-- that end
-- Returns OK, DONE (it has already ended) or GONE (it is not known).
local state = redis.call('HGET', KEYS[3], 'state')
redis.call('ZREM', KEYS[2], ARGV[3])
if not state then return 'GONE' end
if state ~= 'open' then return 'DONE' end
redis.call('HSET', KEYS[3], 'state', 'done', 'taken', ARGV[4], 'refunded', ARGV[5], 'endedMs', ARGV[1])
if tonumber(ARGV[5]) > 0 then redis.call('HINCRBY', KEYS[1], 'used', '-' .. ARGV[5]) end
if #ARGV > 5 then redis.call('HDEL', KEYS[3], unpack(ARGV, 6)) end
redis.call('PEXPIRE', KEYS[3], ARGV[2])
return 'OK'
