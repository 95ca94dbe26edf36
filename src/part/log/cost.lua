-- How many bytes an event uses in the quota of its stream. These constants were measured with Redis 7.0.

-- An entry in the log's list or in P:late, one in the inbox list, and a record.
local REFERENCE_COST = 110
-- The hash of a producer's id and its ref. This is not part of `costOf`, because ids are kept for a day (sender-ids.lua).
-- When the ids of an hour are removed, their number specifies how many bytes to give back.
local ID_COST = 115
-- Returns how many bytes an event uses until it is removed by retention: the given bytes, its entries in the log and the
-- body, and its references. The sum is stored in the log (`c`), so that retention will return the same number of bytes.
-- In P:late, you can find the number of slots to which the event was routed later.
local function costOf(given, references)
  local ENTRIES_COST = 250
  return given + ENTRIES_COST + REFERENCE_COST * references
end
