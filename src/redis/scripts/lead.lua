#!lua flags=allow-oom
-- A controller that won the lease claims its fencing epoch: above every one before it, also when this slot was lost.
-- KEYS  1 {c}:meta
-- ARGV  1 nowMs  2 uid of the Kubernetes cluster  3 lease transitions  4 fingerprint of the root key, may be empty
-- Returns {OK, epoch} or {OTHER, uid}: this Redis holds the routes of another cluster.
local m = redis.call('HMGET', KEYS[1], 'uid', 'epoch')
if m[1] and m[1] ~= ARGV[2] then return { 'OTHER', m[1] } end
local epoch = math.max(tonumber(m[2] or '0') + 1, tonumber(ARGV[3]), tonumber(ARGV[1]))
redis.call('HSET', KEYS[1], 'uid', ARGV[2], 'epoch', string.format('%.0f', epoch))
if ARGV[4] and ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'rootKey', ARGV[4]) end
return { 'OK', string.format('%.0f', epoch) }
