-- Marks an inactive group key of a slot, as deactivating does, when an event is added to its lane. A claim of the lane parks
-- it instead.
local isClosed = {}
local function parkClosed(groupLane)
  if isClosed[groupLane] ~= nil then return end
  local groupKey = string.sub(groupLane, 9)
  isClosed[groupLane] = groupKey ~= '' and not activeSince(string.sub(groupLane, 1, 8), groupKey)
  if isClosed[groupLane] then redis.call('HSET', KEY_OFF, groupLane, '1') end
end
