#!lua flags=allow-oom
-- Raises or removes hints that are leased, using compare-and-set on their tokens. Simply removing them could lose a
-- wake-up.
-- KEYS  1 due  2 st
-- ARGV  (member, token, next due ms, or '' for none)*
-- Returns one word for each: OK, or KEPT if it was lowered or leased again in the meantime. A kept hint is also due at
-- `next` at the latest. It is no longer leased. The process that works on the member might not know this time, for
-- example because a retry was scheduled after it had read the state. It must not raise the hint beyond this time.
local out = {}
for i = 1, #ARGV, 3 do
  local member, next = ARGV[i], ARGV[i + 2]
  if redis.call('HGET', KEYS[2], member) ~= ARGV[i + 1] then
    if next ~= '' and redis.call('ZADD', KEYS[1], 'LT', 'CH', next, member) == 1 then
      redis.call('HDEL', KEYS[2], member)
    end
    out[#out + 1] = 'KEPT'
  else
    redis.call('HDEL', KEYS[2], member)
    if next == '' then
      redis.call('ZREM', KEYS[1], member)
    else
      redis.call('ZADD', KEYS[1], next, member)
    end
    out[#out + 1] = 'OK'
  end
end
return out
