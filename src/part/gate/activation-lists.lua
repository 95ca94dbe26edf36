-- The lists of a group key (each of them is only read once for each call), and how many lists there are according to
-- the first one.
local keysRead = {}
local function readKey(groupKey)
  local key = keysRead[groupKey]
  if key then return key end
  local lists = { redis.call('HGET', KEY_KEYS, groupKey) or '' }
  local groups = groupsOf(lists[1])
  if groups > 1 then lists[1] = string.sub(lists[1], 1, -SUFFIX - 1) end
  for number = 2, groups do lists[number] = redis.call('HGET', KEY_KEYS, nameOf(groupKey, number)) or '' end
  key = { lists = lists, groups = groups }
  keysRead[groupKey] = key
  return key
end

-- Returns the list of a key that contains a slot, and the slot position in this list. If there have been a few
-- searches for the same key, an index is created.
local function findIn(key, slot)
  local MOST_SEARCHES = 16
  key.searches = (key.searches or 0) + 1
  if key.searches <= MOST_SEARCHES then
    for number, list in ipairs(key.lists) do
      local at = positionIn(list, slot)
      if at then return number, at end
    end
    return nil
  end
  if not key.numberOf then
    key.numberOf = {}
    for number = #key.lists, 1, -1 do
      for at = 1, #key.lists[number], ENTRY do key.numberOf[string.sub(key.lists[number], at, at + 7)] = number end
    end
  end
  local number = key.numberOf[slot]
  return number, number and positionIn(key.lists[number], slot)
end

-- Writes a list after a slot has been added or removed. If the number of lists has changed, the first list is written
-- as well.
local function writeList(groupKey, key, number, slot, isIn)
  local lists, groups = key.lists, key.groups
  if key.numberOf then key.numberOf[slot] = isIn and number or nil end
  while #lists > 1 and lists[#lists] == '' do lists[#lists] = nil end
  local last = #lists
  key.groups = last
  for empty = last + 1, groups do redis.call('HDEL', KEY_KEYS, nameOf(groupKey, empty)) end
  if number > 1 and number <= last then redis.call('HSET', KEY_KEYS, nameOf(groupKey, number), lists[number]) end
  if number > 1 and last == groups then return end
  local first = lists[1] .. (last > 1 and string.format('%03d', last) or '')
  if first == '' then redis.call('HDEL', KEY_KEYS, groupKey) else redis.call('HSET', KEY_KEYS, groupKey, first) end
end
