#!lua flags=no-writes
-- Returns the expected names that are missing from hashes of numbers, and the total number of names they contain.
-- KEYS  hashes
-- ARGV  for each key: number of names, name*
-- Returns {number of names, index of each missing name*} for each key. A field that is not a number is missing.
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
