#!lua flags=no-writes
-- Bodies of events: of those that were too large to be sent along with their claims.
--@keys body
--@args ...
-- More: ids of the streams
-- Returns {OK, body*} in order; '' for an event that retention removed.
local out = { 'OK' }
for i = FIRST, #ARGV do
  local entry = redis.call('XRANGE', KEY_BODY, ARGV[i], ARGV[i])[1]
  out[i + 1] = entry and entry[2][2] or ''
end
return out
