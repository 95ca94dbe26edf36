-- Flattens stream entries to (id, group key, bytes)*: the router reads neither metadata nor bodies.
local function flatten(range)
  local out = {}
  for _, e in ipairs(range) do
    out[#out + 1] = e[1]
    out[#out + 1] = e[2][2]
    out[#out + 1] = e[2][4]
  end
  return out
end
