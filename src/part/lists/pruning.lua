-- Removes what retention removed from lists (lists.lua). The sweep calls this with the slots of the log entries that it
-- removes, and the first ref that stays (g for none, of a slot that was deleted). Returns whether there is more to do.
local MOST_PRUNED = 64
local function pruneList(slot, keepsFrom)
  local head = redis.call('HGET', KEY_LISTS, slot)
  if not head then return false end
  local first, next = struct.unpack('>I4I4', head)
  local gone = {}
  while first < next and #gone < MOST_PRUNED do
    local field = slot .. '\0' .. first
    local chunk = redis.call('HGET', KEY_LISTS, field)
    if chunk and unpackRef(chunk, #chunk - REF_BYTES + 1) >= keepsFrom then break end
    gone[#gone + 1] = field
    first = first + 1
  end
  if first == next and unpackRef(head, #head - REF_BYTES + 1) < keepsFrom then
    gone[#gone + 1] = slot
  elseif #gone > 0 then
    redis.call('HSET', KEY_LISTS, slot, struct.pack('>I4', first) .. string.sub(head, 5))
  end
  if #gone > 0 then redis.call('HDEL', KEY_LISTS, unpack(gone)) end
  return #gone >= MOST_PRUNED and gone[#gone] ~= slot
end
