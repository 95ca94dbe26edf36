#!lua flags=allow-oom
-- Removes closed ledgers that have already been counted by their accounts.
--@keys meta
--@args gen counted
-- counted: first part of the text in `owed`.
-- Returns {OK}, or GONE.
local meta = redis.call('HMGET', KEY_META, 'gen', 'owed')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local owed = meta[2] or ''
if ARG_COUNTED ~= '' and string.sub(owed, 1, #ARG_COUNTED) == ARG_COUNTED then
  local rest = string.sub(owed, #ARG_COUNTED + 1)
  if rest == '' then redis.call('HDEL', KEY_META, 'owed') else redis.call('HSET', KEY_META, 'owed', rest) end
end
return { 'OK' }
