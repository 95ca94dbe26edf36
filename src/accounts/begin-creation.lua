#!lua
-- Notes an object that is being created, so that all replicas count it before it is in their caches.
--@keys creations
--@args now name ttlMs fits
--@unconfirmed
-- ttlMs: time in which the object is created and appears in all caches. fits: how many can be noted without a closer look.
-- Returns {FITS}, or {LOOK, the names of all objects that are noted, including this one}.
redis.call('ZREMRANGEBYSCORE', KEY_CREATIONS, '-inf', ARG_NOW)
redis.call('ZADD', KEY_CREATIONS, string.format('%.0f', ARG_NOW + ARG_TTL_MS), ARG_NAME)
redis.call('PEXPIRE', KEY_CREATIONS, ARG_TTL_MS)
if redis.call('ZCARD', KEY_CREATIONS) <= tonumber(ARG_FITS) then return { 'FITS' } end
local names = redis.call('ZRANGE', KEY_CREATIONS, 0, -1)
table.insert(names, 1, 'LOOK')
return names
