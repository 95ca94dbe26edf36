-- P:skips: events that subscriptions skipped at the end of a pause, until they are counted. Slot and ref up to which it was
-- routed → ref of the last skipped event.

-- Returns the ref since which a group key is active for a slot, or nil, and the number of lists read.
local function readSince(groupKey, slot)
  local first = redis.call('HGET', KEY_KEYS, groupKey) or ''
  for number = 1, groupsOf(first) do
    local list = number == 1 and first or redis.call('HGET', KEY_KEYS, nameOf(groupKey, number)) or ''
    for at = 1, #list - SUFFIX, ENTRY do
      if string.sub(list, at, at + 7) == slot then return string.sub(list, at + 8, at + ENTRY - 1), number end
    end
  end
  return nil, groupsOf(first)
end

-- Counts a page of a slot's skipped events whose group keys are active now. Returns 1 if there are more.
local function countSkips()
  local PAGE, LISTS, CLOSED = 256, 500, 99
  local field, till = unpack(redis.call('HSCAN', KEY_SKIPS, '0', 'COUNT', 1)[2], 1, 2)
  if not field then return 0 end
  local slot, last = string.sub(field, 1, 8), string.sub(field, 9)
  redis.call('HDEL', KEY_SKIPS, field)
  -- Nothing is counted for a closed slot.
  local route = string.byte(redis.call('HGET', KEY_SUBS, slot) or '')
  local entries = {}
  if route and route ~= CLOSED then
    entries = redis.call('XRANGE', KEY_LOG, '(' .. idOf(last), idOf(till), 'COUNT', PAGE)
  end
  local sinceOf, lists, passed = {}, 0, 0
  for _, each in ipairs(entries) do
    local groupKey = each[2][2]
    if groupKey ~= '' and sinceOf[groupKey] == nil then
      if lists > LISTS then break end
      local since, read = readSince(groupKey, slot)
      sinceOf[groupKey], lists = since or false, lists + read
    end
    last, passed = refOf(each[1]), passed + 1
    local since = sinceOf[groupKey]
    if since and since < last then
      missed.skipped = missed.skipped + 1
    elseif groupKey ~= '' then
      missed.notActivated = missed.notActivated + 1
    end
  end
  if passed < #entries or #entries == PAGE then redis.call('HSET', KEY_SKIPS, slot .. last, till) end
  return redis.call('EXISTS', KEY_SKIPS)
end
