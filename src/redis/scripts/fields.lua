#!lua flags=no-writes
-- Reads a hash as a flat list. Clients convert HGETALL to objects, and a field may have any name.
-- KEYS  1 hash
-- Returns (field, value)*.
return redis.call('HGETALL', KEYS[1])
