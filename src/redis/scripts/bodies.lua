#!lua flags=no-writes
-- Metadata and bodies of events, for the dispatcher.
-- KEYS  1 Q:b:gen
-- ARGV  stream ids
-- Returns (group key .. line end .. metadata, body)* in order; twice nothing for an event that retention removed.
local out = {}
for i, id in ipairs(ARGV) do
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  local fields = entry and entry[2]
  out[2 * i - 1] = fields and fields[2] .. '\n' .. fields[4] or ''
  out[2 * i] = fields and fields[6] or ''
end
return out
