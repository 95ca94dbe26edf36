local CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz'
local function crockford(n, width)
  local out = ''
  for _ = 1, width do
    local d = n % 32
    out = string.sub(CROCKFORD, d + 1, d + 1) .. out
    n = (n - d) / 32
  end
  return out
end
-- Events that are stored together share their millisecond: it is written once.
local lastMs, lastTime
-- Stream id 'ms-seq' to its 15-character ref (src/core/refs.ts has the same in TypeScript).
local function refOf(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  if ms ~= lastMs then lastMs, lastTime = ms, crockford(tonumber(ms), 10) end
  return lastTime .. crockford(tonumber(seq), 5)
end
-- Milliseconds of a ref.
local function refMs(ref)
  local ms = 0
  for i = 1, 10 do
    ms = ms * 32 + string.find(CROCKFORD, string.sub(ref, i, i), 1, true) - 1
  end
  return ms
end
