#!lua flags=no-writes
-- Returns which of the expected names are missing in hashes of numbers, and how many names they contain in total.
-- KEYS  hashes
-- ARGV  for each key: number of names, name*
-- Returns {how many it holds, index of each name that is missing*} for each key. If a field is not a number, it is
-- missing.
local at, out = 1, {}
for k, key in ipairs(KEYS) do
  local n = tonumber(ARGV[at])
  local found = { redis.call('HLEN', key) }
  if n > 0 then
    local values = redis.call('HMGET', key, unpack(ARGV, at + 1, at + n))
    for i = 1, n do
      if not tonumber(values[i]) then found[#found + 1] = i end
    end
  end
  at = at + 1 + n
  out[k] = found
end
return out
