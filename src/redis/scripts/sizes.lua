#!lua flags=no-writes
-- What events cost: their group keys and sizes, without reading bodies.
-- KEYS  1 Q:m:gen
-- ARGV  stream ids
-- Returns (group key, bytes of the body or '' for an event that retention removed)* in order.
local out = {}
for i, id in ipairs(ARGV) do
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  out[2 * i - 1] = entry and entry[2][2] or ''
  out[2 * i] = entry and entry[2][4] or ''
end
return out
