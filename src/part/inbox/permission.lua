-- Returns a single word for the reason why a slot is not able to receive events, or nil if it is.
local function permissionOf(slot)
  local meta = redis.call('HMGET', KEY_META, 'ready', 'gen')
  if meta[2] and meta[2] ~= ARG_GEN then return 'GONE' end
  if meta[1] ~= '1' or redis.call('HEXISTS', KEY_KEYS, '') == 0 then return 'CLOSED' end
  local row = redis.call('HGET', KEY_SUBS, slot)
  local route = row and string.sub(row, 1, 1) or 'c'
  return route == 'c' and 'GONE' or route == 'p' and 'PAUSED' or nil
end

-- Returns the ref since which a group key has been active for a slot, or nil.
local function activeSince(slot, groupKey)
  local first = redis.call('HGET', KEY_KEYS, groupKey) or ''
  for number = 1, groupsOf(first) do
    local list = number == 1 and first or redis.call('HGET', KEY_KEYS, nameOf(groupKey, number)) or ''
    local at = positionIn(list, slot)
    if at then return string.sub(list, at + 8, at + ENTRY - 1) end
  end
end
