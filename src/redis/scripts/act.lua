#!lua flags=allow-oom
-- Records whether a group key of an integration is open.
-- KEYS  1 I:meta  2 I:act
-- ARGV  1 fence  2 group key  3 since ms, or '' to close
-- Returns OK, SAME (nothing to do; `since` is kept) or FENCED (a newer controller leads). Closing something that never
-- existed does not create anything. This is required because an Activation can refer to an integration that does not
-- exist.
if ARGV[3] == '' and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then return 'SAME' end
local fence, have = tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if have > fence then return 'FENCED' end
if have < fence then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
if ARGV[3] == '' then return redis.call('HDEL', KEYS[2], ARGV[2]) == 1 and 'OK' or 'SAME' end
if tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or '') then return 'SAME' end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
return 'OK'
