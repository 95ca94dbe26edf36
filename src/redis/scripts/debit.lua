#!lua
-- Charges an account for a replay and records the data required to complete the replay. Each name is only charged once.
-- KEYS  1 A:meta  2 A:hold  3 A:rp  4 A:rp:<name>
-- ARGV  1 nowMs  2 name (integration/id)  3 tokens  4.. (field, value)* of the intent
-- Returns OK, SAME (it was charged before, for whatever), SHORT (the plan's tokens do not cover it) or CLOSED (missing
--         is closed).
--@include balance
if redis.call('EXISTS', KEYS[4]) == 1 then return 'SAME' end
local m = redis.call('HMGET', KEYS[1], 'plan', 'included', 'used')
if not m[1] or not m[2] then return 'CLOSED' end
local tokens = tonumber(ARGV[3])
if m[1] ~= 'Metered' and tokens > tonumber(m[2]) - tonumber(m[3] or '0') - heldByOthers(KEYS[2], '') then
  return 'SHORT'
end
redis.call('HSET', KEYS[4], 'state', 'open', 'tokens', ARGV[3], unpack(ARGV, 4))
redis.call('ZADD', KEYS[3], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'used', ARGV[3])
return 'OK'
