-- Returns how many bytes an event uses in the quota of its stream until it is removed by retention. This includes the
-- given bytes, its entries in the log and the body, the hash of the producer's id, and for each reference the entry in
-- the log's list, the inbox list, and the record. These constants are the results of MEMORY USAGE in Redis 7.0, rounded
-- up. The sum is stored in the log (`c`), so that retention will return the same number of bytes. In P:late, you can
-- find the number of slots to which the event was routed later.
local REFERENCE_COST = 110
local function costOf(given, hasId, references)
  local ENTRIES_COST, ID_COST = 250, 100
  return given + ENTRIES_COST + (hasId and ID_COST or 0) + REFERENCE_COST * references
end
