#!lua flags=allow-oom
-- Removes ids of senders of a part that is being removed.
--@keys meta ids*
--@args fence
-- Returns {OK}, or FENCED.
if tonumber(redis.call('HGET', KEY_META, 'fence') or '0') > tonumber(ARG_FENCE) then return { 'FENCED' } end
for at = FIRST_IDS, #KEYS do redis.call('UNLINK', KEYS[at]) end
return { 'OK' }
