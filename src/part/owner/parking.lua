-- Marks a group key of a slot, as deactivating does, that is not active while something is put into its lane: what is
-- claimed there is parked.
local isClosed = {}
local function parkClosed(groupLane)
  if isClosed[groupLane] ~= nil then return end
  local groupKey = string.sub(groupLane, 9)
  isClosed[groupLane] = groupKey ~= '' and not activeSince(string.sub(groupLane, 1, 8), groupKey)
  if isClosed[groupLane] then redis.call('HSET', KEY_OFF, groupLane, '1') end
end
