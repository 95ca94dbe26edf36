#!lua flags=no-writes
-- What a part says of a slot, in one step.
--@keys meta keys subs endpoints health
--@args gen slot ...
-- More: group keys
-- Returns {OK, 1 where control data are whole, row or '', endpoint or '', health or '', for each group key the ref since which
--         it is active, or ''}, or GONE. Fewer of these than group keys: the rest would take too long, and is the next call.
--@include ../gate/activations.lua
--@include ../inbox/permission.lua
local meta = redis.call('HMGET', KEY_META, 'ready', 'gen')
if meta[2] ~= ARG_GEN then return { 'GONE' } end
local isWhole = meta[1] == '1' and redis.call('HEXISTS', KEY_KEYS, '') == 1
local row, endpoint = redis.call('HGET', KEY_SUBS, ARG_SLOT), redis.call('HGET', KEY_ENDPOINTS, ARG_SLOT)
local reply = { 'OK', isWhole and 1 or 0, row or '', endpoint or '', redis.call('HGET', KEY_HEALTH, ARG_SLOT) or '' }
local FIELDS, read = 300, 0
for i = FIRST, #ARGV do
  read = read + groupsOf(redis.call('HGET', KEY_KEYS, ARGV[i]) or '')
  if read > FIELDS and i > FIRST then break end
  reply[#reply + 1] = activeSince(ARG_SLOT, ARGV[i]) or ''
end
return reply
