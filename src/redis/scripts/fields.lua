#!lua flags=no-writes
-- A hash as a flat list: clients make objects of HGETALL, and a field may have any name.
-- KEYS  1 hash
-- Returns (field, value)*.
return redis.call('HGETALL', KEYS[1])
