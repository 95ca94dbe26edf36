#!lua flags=allow-oom
-- Raises or removes a leased hint, by compare-and-set on its token: plain removal would lose a wake-up.
-- KEYS  1 due  2 st
-- ARGV  1 member  2 token  3 next due ms, or '' for none
-- Returns OK, or KEPT when it was lowered or leased again meanwhile.
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 'KEPT' end
redis.call('HDEL', KEYS[2], ARGV[1])
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
end
return 'OK'
