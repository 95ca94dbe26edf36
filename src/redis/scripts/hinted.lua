#!lua flags=no-writes
-- How much work the partitions of a hint index hold: of one slot, or of any on a Redis that is no Cluster.
-- KEYS  due of each partition
-- ARGV  1 nowMs
-- Returns for each: members, members that are due now, soonest due ms or ''.
local out = {}
for _, due in ipairs(KEYS) do
  local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
  out[#out + 1] = redis.call('ZCARD', due)
  out[#out + 1] = redis.call('ZCOUNT', due, '-inf', ARGV[1])
  out[#out + 1] = first[2] or ''
end
return out
