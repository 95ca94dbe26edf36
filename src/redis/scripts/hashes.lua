#!lua flags=no-writes
-- Several hashes at once: of one slot, or of any on a Redis that is no Cluster.
-- KEYS  hashes
-- Returns {(field, value)*} for each, in order; {} for one that is not there.
local out = {}
for i, key in ipairs(KEYS) do out[i] = redis.call('HGETALL', key) end
return out
