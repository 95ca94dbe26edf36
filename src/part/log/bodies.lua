#!lua flags=no-writes
-- Bodies of events: of those that were too large to be sent along with their claims.
--@keys body
--@args ...
-- More: refs, at least one
-- Returns {OK, body*} in order; '' for an event that retention removed.
local bodies = redis.call('HMGET', KEY_BODY, unpack(ARGV, FIRST))
for i, body in ipairs(bodies) do bodies[i] = body or '' end
return { 'OK', unpack(bodies) }
