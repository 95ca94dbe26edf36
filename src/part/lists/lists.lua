-- P:in: the events in the inbox of each slot, starting with the oldest. The refs are packed into 8 bytes. Fields:
--   slot            numbers of the oldest chunk and of the next one (4 bytes each), then up to 16 refs
--   slot NUL n      a full chunk of 16 refs (n in decimal)
-- Events are routed to a slot in the same order as in the log, even while it is catching up. As a result, a list can
-- only grow at its end. Lists don't contain replays and test events. When you read a list, you need to skip events that
-- are older than the log. The sweep removes such events (pruning.lua).
local listed = {}

-- Remembers that an event has been routed to a slot.
local function listRef(slot, ref)
  local refs, packed = listed[slot], packedRef == ref and packedAs or packRef(ref)
  listed[slot] = refs and refs .. packed or packed
end

-- Writes all events that have been remembered to their lists.
local function writeLists()
  local slots, heads, set = {}, {}, {}
  for slot in pairs(listed) do slots[#slots + 1] = slot end
  if #slots == 0 then return end
  readFields(KEY_LISTS, slots, heads)
  for _, slot in ipairs(slots) do
    local head = (heads[slot] or NO_LIST) .. listed[slot]
    local first, next = string.sub(head, 1, 4), nil
    while #head > HEAD_BYTES + REFS * REF_BYTES do
      next = struct.unpack('>I4', head, 5)
      set[#set + 1] = slot .. '\0' .. next
      set[#set + 1] = string.sub(head, HEAD_BYTES + 1, HEAD_BYTES + REFS * REF_BYTES)
      head = first .. struct.pack('>I4', next + 1) .. string.sub(head, HEAD_BYTES + REFS * REF_BYTES + 1)
    end
    set[#set + 1] = slot
    set[#set + 1] = head
  end
  inSlices('HSET', KEY_LISTS, set)
  listed = {}
end
