-- P:keys: group key → slots for which it is active: (slot, since)*, of 8 and 15 characters, up to 128 per field. If
-- there are more of them, they are stored in the fields `key NUL 2`, `key NUL 3`, and so on. In this case, the number
-- of the last field is added to the end of the first field, using 3 digits. The field '' is used to mark the hash as
-- complete. If it does not exist, nothing is routed. Its value is longer than 64 bytes, so that Redis always uses a
-- table:
-- it would read a list of up to 512 fields from the start for each group key.
local ENTRY, GROUP = 23, 128
local SUFFIX = 3

-- Returns the number of fields, which is taken from the first field.
local function groupsOf(first)
  return #first % ENTRY == SUFFIX and tonumber(string.sub(first, -SUFFIX)) or 1
end
local function nameOf(groupKey, number) return number == 1 and groupKey or (groupKey .. '\0' .. number) end

-- Returns the position of a slot in a list.
local function positionIn(list, slot)
  local at = string.find(list, slot, 1, true)
  -- The slot text can also occur in the middle of an entry.
  while at and (at - 1) % ENTRY ~= 0 do at = string.find(list, slot, at + 1, true) end
  return at
end
