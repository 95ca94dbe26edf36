#!lua flags=allow-oom
-- Takes back all space of a part. It stores nothing more until its account grants some again, also where its events expire.
-- Earlier grants that arrive later have no effect.
--@keys meta
--@args gen seq
-- Returns {OK, bytes that it has stored, or '' where a later grant is in force}, or GONE.
local meta = redis.call('HMGET', KEY_META, 'gen', 'bytes', 'spaceSeq')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local seq = tonumber(meta[3] or '0')
if seq > tonumber(ARG_SEQ) then return { 'OK', '' } end
redis.call('HSET', KEY_META, 'spaceSeq', ARG_SEQ)
redis.call('HDEL', KEY_META, 'space')
return { 'OK', meta[2] or '0' }
