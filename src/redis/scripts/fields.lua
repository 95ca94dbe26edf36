#!lua flags=no-writes
-- Reads a hash as a flat list. This is required because clients convert the result of HGETALL to an object, and fields
-- can have any name.
-- KEYS  1 hash
-- Returns (field, value)*.
return redis.call('HGETALL', KEYS[1])
