-- How many bytes an event uses in the quota of its stream. The constants were measured with Redis 7.0.

-- An entry in the log's list or in P:late, one in the inbox list, and a record.
local REFERENCE_COST = 45
-- The field in P:late of an event that was routed later.
local LATE_COST = 60
-- The hash of a producer's id and its ref. This is not part of `costOf`, because ids are kept for a day
-- (sender-ids.lua).
-- When the ids of an hour are removed, their number specifies how many bytes to give back.
local ID_COST = 115

-- Returns how many bytes an event uses until it is removed by retention: its body, the other bytes, its entries in the
-- log and the body, a field for its records, and its references. The sum is stored in the log (`c`), so that retention
-- will return the same number of bytes. In P:late, you can find the number of slots to which the event was routed
-- later.
-- Redis stores a body in blocks of up to a quarter more (body-pieces.ts). It adds 6 bytes, or 10 to a large body, which
-- never needs a larger block for the other 4. For a small body, this is part of ENTRIES_COST.
local function costOf(body, other, references)
  local ENTRIES_COST, SMALL_BODY = 250, 2048
  if body >= SMALL_BODY then
    local needed = body + 6
    local _, exponent = math.frexp(needed - 1)
    local block = 2 ^ (exponent - 3)
    body = math.ceil(needed / block) * block
  end
  return body + other + ENTRIES_COST + REFERENCE_COST * references
end
