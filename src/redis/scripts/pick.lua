#!lua flags=allow-oom
-- Leases due hints. Each hint receives a unique token and is due again at the end of the lease.
-- KEYS  1 due  2 st
-- ARGV  1 nowMs  2 most  3 leaseMs  4 token
-- Returns {next due ms or '', member*}. The field '' of `st` contains the last time at which hints were picked. If this
-- is in the future, the clock was set back. In this case, hints that were leased or due within a minute of the previous
-- time are due now because they would otherwise have to wait until the clock has caught up.
local EARLY = 1000
local now = tonumber(ARGV[1])
local last = tonumber(redis.call('HGET', KEYS[2], '') or '0')
if last > now + 2000 then
  local till = string.format('%.0f', last + 60000)
  local early = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], till, 'LIMIT', 0, EARLY)
  for _, member in ipairs(early) do redis.call('ZADD', KEYS[1], ARGV[1], member) end
  if #early < EARLY then last = 0 end
end
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local lease = string.format('%.0f', tonumber(ARGV[1]) + tonumber(ARGV[3]))
for _, member in ipairs(due) do
  redis.call('ZADD', KEYS[1], lease, member)
  redis.call('HSET', KEYS[2], member, ARGV[4])
end
if #due > 0 and last <= now + 2000 then redis.call('HSET', KEYS[2], '', ARGV[1]) end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local out = { first[2] or '' }
for _, member in ipairs(due) do out[#out + 1] = member end
return out
