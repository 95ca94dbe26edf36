#!lua flags=allow-oom
-- Takes back all of the space from a part. After that, it can't store anything until its account has granted it some
-- space again. This is also true if its events expire. If an earlier grant arrives later, it does not have any effect.
--@keys meta
--@args gen account seq
-- Returns {OK, bytes that it has stored, or '' where a later grant is in force}, or GONE (also if it has another
--         account).
local meta = redis.call('HMGET', KEY_META, 'gen', 'bytes', 'spaceSeq', 'payer')
if meta[1] ~= ARG_GEN or meta[4] ~= ARG_ACCOUNT then return { 'GONE' } end
local seq = tonumber(meta[3] or '0')
if seq > tonumber(ARG_SEQ) then return { 'OK', '' } end
redis.call('HSET', KEY_META, 'spaceSeq', ARG_SEQ)
redis.call('HDEL', KEY_META, 'space')
return { 'OK', meta[2] or '0' }
