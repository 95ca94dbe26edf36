#!lua flags=allow-oom
-- Gives back all tokens that a part has left. The account will count them as granted until this has been reported to
-- it.
--@keys meta
--@args gen
-- Returns {OK}, or GONE.
local meta = redis.call('HMGET', KEY_META, 'gen', 'granted', 'used')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
if meta[2] and tonumber(meta[2]) > tonumber(meta[3] or '0') then
  redis.call('HSET', KEY_META, 'granted', meta[3] or '0')
end
return { 'OK' }
