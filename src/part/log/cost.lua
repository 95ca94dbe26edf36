-- What an event takes up in the quota of its stream, bytes, until retention removes it: what was given, its entries in log
-- and body, the hash of a sender's id, and for each reference its place in the log's list, in the inbox's and its record.
-- MEMORY USAGE on Redis 7.0 gives these, rounded up. The log keeps the sum (`c`), so that what is given back is what was taken;
-- of slots that it was routed to later, P:late says how many they are.
local REFERENCE_COST = 110
local function costOf(given, hasId, references)
  local ENTRIES_COST, ID_COST = 250, 100
  return given + ENTRIES_COST + (hasId and ID_COST or 0) + REFERENCE_COST * references
end
