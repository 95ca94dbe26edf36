-- Returns the bytes that an event uses in the quota of its stream until retention removes it: the given bytes, its entries in
-- log and body, the hash of the producer's id, and for each reference its entry in the log's list, the inbox list and its
-- record. The constants are results of MEMORY USAGE on Redis 7.0, rounded up. The log stores the sum (`c`), so that retention
-- returns the same number of bytes. P:late gives the number of slots that the event was routed to later.
local REFERENCE_COST = 110
local function costOf(given, hasId, references)
  local ENTRIES_COST, ID_COST = 250, 100
  return given + ENTRIES_COST + (hasId and ID_COST or 0) + REFERENCE_COST * references
end
