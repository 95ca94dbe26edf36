-- Joins texts, which are changed by this. `table.concat` would create and hash several long strings along the way.
local function join(p)
  local AT_ONCE = 16
  repeat
    local n, m = #p, 0
    for i = n + 1, math.ceil(n / AT_ONCE) * AT_ONCE do p[i] = '' end
    for i = 1, n, AT_ONCE do
      m = m + 1
      p[m] = p[i] .. p[i + 1] .. p[i + 2] .. p[i + 3] .. p[i + 4] .. p[i + 5] .. p[i + 6] .. p[i + 7]
        .. p[i + 8] .. p[i + 9] .. p[i + 10] .. p[i + 11] .. p[i + 12] .. p[i + 13] .. p[i + 14] .. p[i + 15]
    end
    for i = m + 1, #p do p[i] = nil end
  until m <= 1
  return p[1] or ''
end
