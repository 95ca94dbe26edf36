local CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz'
-- Stream id 'ms-seq' to its 15-character ref (src/core/refs.ts has the same in TypeScript).
local function refOf(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  local out = {}
  for i = 15, 11, -1 do
    local d = seq % 32
    out[i] = string.sub(CROCKFORD, d + 1, d + 1)
    seq = (seq - d) / 32
  end
  for i = 10, 1, -1 do
    local d = ms % 32
    out[i] = string.sub(CROCKFORD, d + 1, d + 1)
    ms = (ms - d) / 32
  end
  return table.concat(out)
end
-- Milliseconds of a ref.
local function refMs(ref)
  local ms = 0
  for i = 1, 10 do
    ms = ms * 32 + string.find(CROCKFORD, string.sub(ref, i, i), 1, true) - 1
  end
  return ms
end
