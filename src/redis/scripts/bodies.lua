#!lua flags=no-writes
-- Metadata and bodies of events, for the dispatcher.
-- KEYS  1 Q:m:gen  2 Q:b:gen
-- ARGV  stream ids
-- Returns {metadata, group key, body}* in order; {} for an event that retention removed.
local out = {}
for i, id in ipairs(ARGV) do
  local m = redis.call('XRANGE', KEYS[1], id, id)[1]
  local b = redis.call('XRANGE', KEYS[2], id, id)[1]
  out[i] = m and b and { m[2][6], m[2][2], b[2][2] } or {}
end
return out
