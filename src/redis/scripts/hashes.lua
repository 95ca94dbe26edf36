#!lua flags=no-writes
-- Reads several hashes. They must belong to the same slot unless this Redis is not a Cluster.
-- KEYS  hashes
-- Returns {(field, value)*} for each hash in order, or {} for a missing hash.
local out = {}
for i, key in ipairs(KEYS) do out[i] = redis.call('HGETALL', key) end
return out
