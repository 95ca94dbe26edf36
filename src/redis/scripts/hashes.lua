#!lua flags=no-writes
-- Reads several hashes at once. They must be in the same slot, unless this Redis is not a Cluster.
-- KEYS  hashes
-- Returns {(field, value)*} for each, in order; {} for one that is not there.
local out = {}
for i, key in ipairs(KEYS) do out[i] = redis.call('HGETALL', key) end
return out
