#!lua flags=allow-oom
-- Raises the bytes that a part may store to what its account has granted. An older grant than the last one has no effect, and
-- neither has one of another limit.
--@keys meta
--@args gen limit seq space
-- Returns {OK}, or GONE.
local meta = redis.call('HMGET', KEY_META, 'gen', 'storedMax', 'spaceSeq')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
if meta[2] == ARG_LIMIT and tonumber(ARG_SEQ) > tonumber(meta[3] or '0') then
  redis.call('HSET', KEY_META, 'spaceSeq', ARG_SEQ, 'space', ARG_SPACE)
end
return { 'OK' }
