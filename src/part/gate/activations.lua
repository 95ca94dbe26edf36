-- P:keys: group key → slots for which it is active: (slot, since)*, of 8 and 15 characters, up to 128 per field. Any others
-- are in the fields `key NUL 2`, `key NUL 3`, and so on. In this case, the first field ends with the number of the last one,
-- in 3 digits. The field '' marks that the hash is complete. Without it, nothing is routed.
local ENTRY, GROUP = 23, 128
local SUFFIX = 3

-- Returns the number of fields according to the first field.
local function groupsOf(first)
  return #first % ENTRY == SUFFIX and tonumber(string.sub(first, -SUFFIX)) or 1
end
local function nameOf(groupKey, number) return number == 1 and groupKey or (groupKey .. '\0' .. number) end
