#!lua flags=allow-oom
-- Claims the fencing epoch for a controller that has acquired the lease. It is higher than all previous epochs even if
-- this slot was lost.
-- KEYS  1 {c}:meta
-- ARGV  1 nowMs  2 uid of the Kubernetes cluster  3 lease transitions  4 fingerprint of the root key, may be empty
--       5 format of the data that this controller writes  6 instance, empty for the default installation
--       7 random value: the id of this Redis, if it does not have one yet, and part of the first version of the keys
-- For the field `keys`, see redis/keys-version.ts.
-- Returns {OK, epoch, id of this Redis}, {OTHER, uid}: this Redis holds the routes of another cluster,
-- {INSTANCE, name}: it holds those of another installation in this cluster, or {FORMAT, format}: its data has another
-- format.
local m = redis.call('HMGET', KEYS[1], 'uid', 'epoch', 'format', 'instance')
if m[1] and m[1] ~= ARGV[2] then return { 'OTHER', m[1] } end
if (m[1] or m[3]) and (m[4] or '') ~= ARGV[6] then return { 'INSTANCE', m[4] or '' } end
if (m[1] or m[3]) and (m[3] or '0') ~= ARGV[5] then return { 'FORMAT', m[3] or '0' } end
local epoch = math.max(tonumber(m[2] or '0') + 1, tonumber(ARGV[3]), tonumber(ARGV[1]))
epoch = string.format('%.0f', epoch)
-- A failover may lose the epoch. It can then be claimed again.
local keys = epoch .. ' ' .. ARGV[7]
redis.call('HSET', KEYS[1], 'uid', ARGV[2], 'epoch', epoch, 'keys', keys, 'format', ARGV[5], 'instance', ARGV[6])
if ARGV[4] and ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'rootKey', ARGV[4]) end
redis.call('HSETNX', KEYS[1], 'store', ARGV[7])
return { 'OK', epoch, redis.call('HGET', KEYS[1], 'store') }
