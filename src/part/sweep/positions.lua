-- Moves a page of the positions which are before the end of the slice to the end of the slice. It returns the number of
-- deliveries that have not been routed, and the next cursor. After the last page, the cursor is -. This requires that
-- the part itself is not being held back before the end.
local function movePositions(last, cursor)
  local order, lost, moved = nil, 0, {}
  local function after(position)
    if not order then
      order = {}
      eachEvent('-', idOf(last), function(ref)
        order[#order + 1] = ref
        return true
      end)
    end
    local low, high = 1, #order + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if order[middle] > position then high = middle else low = middle + 1 end
    end
    return #order + 1 - low
  end
  local page = redis.call('HSCAN', KEY_POSITIONS, cursor, 'COUNT', POSITIONS)
  for i = 1, #page[2], 2 do
    if page[2][i + 1] < last then
      moved[#moved + 1] = page[2][i]
      moved[#moved + 1] = last
      lost = lost + after(page[2][i + 1])
    end
  end
  inSlices('HSET', KEY_POSITIONS, moved)
  if page[1] ~= '0' then return lost, page[1] end
  local held = meta.pos or NO_REF
  if meta.hold and held < last then
    local unrouted = after(held)
    put('pos', last)
    gone[#gone + 1] = 'slice'
    gone[#gone + 1] = 'need'
    -- Earlier calls may have routed the first event to some of the slots already.
    local sliced = tonumber(string.match(meta.slice or '', ' (%d+)$') or '0')
    put('out', counted(meta.out, now, 0, 0, sliced > 0 and unrouted - 1 or unrouted))
    lost = lost + math.max(0, unrouted * tonumber(meta.live or '0') - sliced)
  end
  return lost, '-'
end
