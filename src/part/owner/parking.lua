-- If an event is added to a lane whose group key is inactive for the slot, this adds the same mark as a deactivation. A
-- claim of this lane will then park it.
local isClosed = {}
local function parkClosed(groupLane)
  if isClosed[groupLane] ~= nil then return end
  local groupKey = string.sub(groupLane, 9)
  isClosed[groupLane] = groupKey ~= '' and not activeSince(string.sub(groupLane, 1, 8), groupKey)
  if isClosed[groupLane] then redis.call('HSET', KEY_OFF, groupLane, '1') end
end
