-- Removes the oldest chunks from a list (lists.lua). A chunk is removed if all of its refs are before `keepsFrom`. If
-- the slot was deleted and this is g, all chunks are removed. It returns if there is more to do, and the packed refs
-- which have been removed.
local MOST_PRUNED = 64
local function pruneList(slot, keepsFrom)
  local head = redis.call('HGET', KEY_LISTS, slot)
  if not head then return false, {} end
  local first, next = struct.unpack('>I4I4', head)
  local gone, texts = {}, {}
  while first < next and #gone < MOST_PRUNED do
    local field = slot .. '\0' .. first
    local chunk = redis.call('HGET', KEY_LISTS, field)
    if chunk and unpackRef(chunk, #chunk - REF_BYTES + 1) >= keepsFrom then break end
    gone[#gone + 1] = field
    texts[#texts + 1] = chunk or nil
    first = first + 1
  end
  local isLast = first == next and unpackRef(head, #head - REF_BYTES + 1) < keepsFrom
  if isLast then
    gone[#gone + 1] = slot
    texts[#texts + 1] = string.sub(head, HEAD_BYTES + 1)
  elseif #gone > 0 then
    redis.call('HSET', KEY_LISTS, slot, struct.pack('>I4', first) .. string.sub(head, 5))
  end
  if #gone > 0 then redis.call('HDEL', KEY_LISTS, unpack(gone)) end
  return #gone >= MOST_PRUNED and not isLast, texts
end
