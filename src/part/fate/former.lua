#!lua flags=no-writes
-- Returns the inboxes of deleted subscriptions that an event was routed to. See P:former.
--@keys meta log late former
--@args gen ref
-- Returns {OK, inbox*}, or GONE.
--@include ../lanes/refs.lua
--@include ../sweep/unpacking.lua
local SLOT, TIME, AT_ONCE = 5, 13, 1000
if redis.call('HGET', KEY_META, 'gen') ~= ARG_GEN then return { 'GONE' } end
local out = { 'OK' }
if redis.call('EXISTS', KEY_FORMER) == 0 then return out end
local id = idOf(ARG_REF)
local event = redis.call('XRANGE', KEY_LOG, id, id)[1]
if not event then return out end
local packed = event[2][10] .. (redis.call('HGET', KEY_LATE, ARG_REF) or '')
for from = 1, #packed, SLOT * AT_ONCE do
  local slots = {}
  for at = from, math.min(#packed, from + SLOT * AT_ONCE - 1), SLOT do
    slots[#slots + 1] = unpackSlot(string.sub(packed, at, at + SLOT - 1))
  end
  for _, former in ipairs(redis.call('HMGET', KEY_FORMER, unpack(slots))) do
    if former then out[#out + 1] = string.sub(former, TIME + 1) end
  end
end
return out
