#!lua flags=allow-oom
-- Removes the ids of producers from a part which is being removed. This must be the last step: P:meta will expire an
-- hour later, unless it still has ledgers (tokens/ledger.lua).
--@keys meta ids*
--@args fence gen
-- Returns {OK}, or FENCED.
local REMEMBERED_MS = 3600000
local meta = redis.call('HMGET', KEY_META, 'fence', 'gen', 'was', 'owed', 'ended')
if tonumber(meta[1] or '0') > tonumber(ARG_FENCE) then return { 'FENCED' } end
for at = FIRST_IDS, #KEYS do redis.call('UNLINK', KEYS[at]) end
if meta[3] == ARG_GEN then redis.call('HDEL', KEY_META, 'was') end
local isLast = not meta[3] or meta[3] == ARG_GEN
if meta[2] == '-' and isLast and not meta[4] and not meta[5] then redis.call('PEXPIRE', KEY_META, REMEMBERED_MS) end
return { 'OK' }
