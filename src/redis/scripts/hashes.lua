#!lua flags=no-writes
-- Reads several hashes. In a Redis Cluster, all hashes must belong to the same slot. A single call never reads more
-- than MOST fields, because it delays all other commands.
-- KEYS  hashes
-- Returns {(field, value)*} for each hash in order, or {} for a missing hash. For a hash that does not fit into this
-- call, this returns its number of fields instead.
local MOST = 1000
local out, left = {}, MOST
for i, key in ipairs(KEYS) do
  local size = redis.call('HLEN', key)
  if size > left then
    out[i] = size
  else
    out[i] = redis.call('HGETALL', key)
    left = left - size
  end
end
return out
