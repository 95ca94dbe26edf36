#!lua flags=no-writes
-- Returns the amount of work in the partitions of a hint index. In a Redis Cluster, all partitions must belong to the
-- same slot.
-- KEYS  due of each partition
-- ARGV  1 nowMs
-- Returns for each: members, due members, earliest due ms or ''.
local out = {}
for _, due in ipairs(KEYS) do
  local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
  out[#out + 1] = redis.call('ZCARD', due)
  out[#out + 1] = redis.call('ZCOUNT', due, '-inf', ARGV[1])
  out[#out + 1] = first[2] or ''
end
return out
