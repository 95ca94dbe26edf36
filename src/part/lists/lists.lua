-- P:in: the events in the inbox of a slot, oldest first. Refs are packed into 8 bytes. Fields:
--   slot            numbers of the oldest chunk and of the next one (4 bytes each), then up to 16 refs
--   slot NUL n      a full chunk of 16 refs (n in decimal)
-- The events of a slot are routed in the order of the log, also while it catches up, so a list only grows at its end. Lists
-- don't contain replays and test events. Readers must skip events older than the log, which the sweep removes (pruning.lua).
local listed = {}

-- Remembers that an event was routed to a slot.
local function listRef(slot, ref)
  local refs = listed[slot]
  listed[slot] = refs and (refs .. packRef(ref)) or packRef(ref)
end

-- Writes the remembered events to the lists.
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
