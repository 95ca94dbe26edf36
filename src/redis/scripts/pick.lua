#!lua flags=allow-oom
-- Leases due hints: each gets a unique token, and is due again when the lease passes.
-- KEYS  1 due  2 st
-- ARGV  1 nowMs  2 most  3 leaseMs  4 token
-- Returns {next due ms or '', member*}.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local lease = string.format('%.0f', tonumber(ARGV[1]) + tonumber(ARGV[3]))
for _, member in ipairs(due) do
  redis.call('ZADD', KEYS[1], lease, member)
  redis.call('HSET', KEYS[2], member, ARGV[4])
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local out = { first[2] or '' }
for _, member in ipairs(due) do out[#out + 1] = member end
return out
