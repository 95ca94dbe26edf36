#!lua flags=allow-oom
-- Raises the number of bytes that a part is allowed to store to the number that was granted by its account. A grant
-- that is older than the last one, or that belongs to a different limit, has no effect.
--@keys meta
--@args gen limit seq space
-- Returns {OK}, or GONE.
local meta = redis.call('HMGET', KEY_META, 'gen', 'storedMax', 'spaceSeq')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
if meta[2] == ARG_LIMIT and tonumber(ARG_SEQ) > tonumber(meta[3] or '0') then
  redis.call('HSET', KEY_META, 'spaceSeq', ARG_SEQ, 'space', ARG_SPACE)
end
return { 'OK' }
