#!lua flags=no-writes
-- Reads the series of a tenant, and which counts of some parts it already contains.
--@keys series seriesMarks*
--@args slots ...
-- slots: number of slots. More: slots of the ring, then sources (fold-traffic.lua). seriesMarks: of the week after,
-- this week, and the week before.
-- Returns {text of each slot or nil, mark of each source or nil}.
local sources = FIRST + tonumber(ARG_SLOTS)
local out = redis.call('HMGET', KEY_SERIES, unpack(ARGV, FIRST, sources - 1))
for i = sources, #ARGV do
  local mark = false
  for at = FIRST_SERIESMARKS, #KEYS do mark = mark or redis.call('HGET', KEYS[at], ARGV[i]) end
  out[#out + 1] = mark
end
return out
