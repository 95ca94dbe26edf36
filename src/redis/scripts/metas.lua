#!lua flags=no-writes
-- What is known of events besides their bodies.
-- KEYS  1 Q:b:gen
-- ARGV  stream ids
-- Returns {metadata, group key, bytes of the body}* in order; {} for an event that retention removed.
local out = {}
for i, id in ipairs(ARGV) do
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  local fields = entry and entry[2]
  out[i] = fields and { fields[4], fields[2], #fields[6] } or {}
end
return out
