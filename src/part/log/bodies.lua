#!lua flags=no-writes
-- Reads the event bodies which were too large to be included in the message with their claims.
--@keys log body
--@args ...
-- More: refs, at least one
-- Returns {OK, (body, rest)*} in order. Both are '' if retention removed the event. rest: the end of the body, from the
-- log.
--@include ../lanes/refs.lua
local out = { 'OK' }
for i, body in ipairs(redis.call('HMGET', KEY_BODY, unpack(ARGV, FIRST))) do
  local id = idOf(ARGV[FIRST + i - 1])
  local event = body and redis.call('XRANGE', KEY_LOG, id, id)[1]
  out[#out + 1] = body or ''
  out[#out + 1] = event and event[2][12] or ''
end
return out
