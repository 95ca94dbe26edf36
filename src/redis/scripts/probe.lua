#!lua flags=no-writes
-- Which of the expected names some hashes (of numbers) or sorted sets have not, and how many they hold in all.
-- KEYS  hashes and sorted sets
-- ARGV  for each key: h (hash) or z (sorted set), number of names, name*
-- Returns {how many it holds, index of each name that is missing*} for each key. A field that is no number is missing.
local at, out = 1, {}
for k, key in ipairs(KEYS) do
  local hash, n = ARGV[at] == 'h', tonumber(ARGV[at + 1])
  local found = { redis.call(hash and 'HLEN' or 'ZCARD', key) }
  if n > 0 then
    local values = redis.call(hash and 'HMGET' or 'ZMSCORE', key, unpack(ARGV, at + 2, at + 1 + n))
    for i = 1, n do
      if not tonumber(values[i]) then found[#found + 1] = i end
    end
  end
  at = at + 2 + n
  out[k] = found
end
return out
