#!lua flags=no-writes
-- Reads the bodies of events that were too large for the message with their claims.
--@keys body
--@args ...
-- More: refs, at least one
-- Returns {OK, body*} in order. The body is '' if retention removed the event.
local bodies = redis.call('HMGET', KEY_BODY, unpack(ARGV, FIRST))
for i, body in ipairs(bodies) do bodies[i] = body or '' end
return { 'OK', unpack(bodies) }
