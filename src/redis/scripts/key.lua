#!lua flags=no-writes
-- Reads an ingress key, and whether the tenant has control state.
-- KEYS  1 T:meta  2 T:keys
-- ARGV  1 SHA-256 of the key
-- Returns {`ready` of T:meta or nil, end of the key in ms, '' without an end, or nil without a key}.
return { redis.call('HGET', KEYS[1], 'ready'), redis.call('HGET', KEYS[2], ARGV[1]) }
