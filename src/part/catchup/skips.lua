-- P:skips: events which have been skipped by subscriptions at the end of a pause. The entries are kept until they have
-- been counted. Slot and the ref up to which it has been routed → ref of the last event that was skipped.

-- Returns the ref since which a group key has been active for a slot (or nil), and the number of lists that were read.
local function readSince(groupKey, slot)
  local first = redis.call('HGET', KEY_KEYS, groupKey) or ''
  for number = 1, groupsOf(first) do
    local list = number == 1 and first or redis.call('HGET', KEY_KEYS, nameOf(groupKey, number)) or ''
    local at = positionIn(list, slot)
    if at then return string.sub(list, at + 8, at + ENTRY - 1), number end
  end
  return nil, groupsOf(first)
end

-- Counts a page of the events that were skipped by a slot and whose group keys are active now. If there are more of
-- them, this returns 1.
local function countSkips()
  local PAGE, LISTS, CLOSED = 256, 500, 99
  -- If many slots have skipped events, most of the pages are empty in the end.
  local cursor, found = '0', nil
  repeat cursor, found = unpack(redis.call('HSCAN', KEY_SKIPS, cursor, 'COUNT', 16)) until found[1] or cursor == '0'
  local field, till = found[1], found[2]
  if not field then return 0 end
  local slot, last = string.sub(field, 1, 8), string.sub(field, 9)
  redis.call('HDEL', KEY_SKIPS, field)
  -- If the slot is closed, nothing is counted.
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
