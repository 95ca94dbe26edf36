#!lua flags=allow-oom
-- Removes closed ledgers. After they have been counted by their accounts, their end still has to be noted there.
--@keys meta
--@args gen counted noted
-- counted, noted: first part of the text in `owed` and in `ended` (ledger.lua), or ''.
-- Returns {OK, text in `ended` after this}, or GONE.
local meta = redis.call('HMGET', KEY_META, 'gen', 'owed', 'ended')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local function write(field, before, text)
  if text == before then return end
  if text == '' then redis.call('HDEL', KEY_META, field) else redis.call('HSET', KEY_META, field, text) end
end
local owed, ended = meta[2] or '', meta[3] or ''
if string.sub(ended, 1, #ARG_NOTED) == ARG_NOTED then ended = string.sub(ended, #ARG_NOTED + 1) end
if ARG_COUNTED ~= '' and string.sub(owed, 1, #ARG_COUNTED) == ARG_COUNTED then
  owed = string.sub(owed, #ARG_COUNTED + 1)
  ended = ended .. string.gsub(ARG_COUNTED, ' %d+;', ';')
end
write('owed', meta[2] or '', owed)
write('ended', meta[3] or '', ended)
return { 'OK', ended }
