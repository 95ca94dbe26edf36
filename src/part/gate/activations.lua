-- P:keys: group key → slots that it is active for: (slot, since)*, 8 and 15 characters, at most 128 in one field. More are
-- in fields `key NUL 2`, `key NUL 3`...; the first field ends with the number of the last one then, in 3 digits. The field
-- '' marks that the hash is whole: without it nothing may be routed.
local ENTRY, GROUP = 23, 128
local SUFFIX = 3

-- Returns the number of fields according to the first field.
local function groupsOf(first)
  return #first % ENTRY == SUFFIX and tonumber(string.sub(first, -SUFFIX)) or 1
end
local function nameOf(groupKey, number) return number == 1 and groupKey or (groupKey .. '\0' .. number) end
