#!lua flags=allow-oom
-- Removes fields of a hash that still have the value that was read.
-- KEYS  1 hash
-- ARGV  (field, value)*
-- Returns OK.
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
return 'OK'
