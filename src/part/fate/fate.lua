#!lua flags=no-writes
-- Reads the data that is used to decide if the events of a group key are routed to a slot.
--@keys meta keys subs positions
--@args gen slot groupKey
-- Returns {OK, 1 if control data is complete, row or '', position of a slot that is behind or '', ref since which the
--         group key is active or ''}, or GONE.
--@include ../gate/activations.lua
--@include ../inbox/permission.lua
local meta = redis.call('HMGET', KEY_META, 'ready', 'gen')
if meta[2] ~= ARG_GEN then return { 'GONE' } end
local isWhole = meta[1] == '1' and redis.call('HEXISTS', KEY_KEYS, '') == 1
local row, position = redis.call('HGET', KEY_SUBS, ARG_SLOT), redis.call('HGET', KEY_POSITIONS, ARG_SLOT)
local since = ARG_GROUP_KEY ~= '' and activeSince(ARG_SLOT, ARG_GROUP_KEY)
return { 'OK', isWhole and 1 or 0, row or '', position or '', since or '' }
