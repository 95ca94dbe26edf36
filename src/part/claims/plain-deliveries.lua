-- Ends attempts which have delivered the event of a plain lane (`isPlain`) for the holder of its claim. Most attempts end
-- in this way, so it takes fewer steps than completing.lua, which ends all others. Each attempt has three arguments,
-- starting at `at`: lane, ref, note (completing.lua). The records of all of them are in the first key of records and have
-- been read. There are no other attempts for their slots in the same call.
-- Adds the numbers (from 1) of the attempts that it has not ended to `others`, and the lanes of the others with more
-- events to `follow`. Returns the number of attempts that were ended for each slot.
local function endPlain(at, count, letters, others, follow)
  local lanes, entries, endedBySlot = {}, {}, {}
  for n = 1, count do lanes[n] = ARGV[at + 3 * n - 3] end
  local claims = redis.call('HMGET', KEY_CLAIMS, unpack(lanes))
  if hasTries == nil then hasTries = redis.call('EXISTS', KEY_TRIES) == 1 end
  for n = 1, hasTries and count or 0 do entries[n] = lanes[n] .. '\0' .. ARGV[at + 3 * n - 2] end
  local tries = hasTries and redis.call('HMGET', KEY_TRIES, unpack(entries)) or entries
  -- The text of each event is the same for all its records: age, attempts.
  local records, heads = recordsAt[FIRST_RECORDS], {}
  for n = 1, count do
    local lane, ref, claim = lanes[n], ARGV[at + 1], claims[n]
    local hasMore = claim == '+' .. ref .. ARG_DISPATCHER
    -- A lane that is in this call twice has one claim.
    if (hasMore or claim == 'c' .. ref .. ARG_DISPATCHER) and not tries[n] and claimOf[lane] == nil then
      local slot, head = string.sub(lane, 1, 8), heads[ref]
      if not head then
        head = 'd' .. ageOf(ref) .. ' 1 '
        heads[ref] = head
      end
      records[ref] = partlyFull(FIRST_RECORDS, ref, records[ref]) .. packSlot(slot) .. head .. ARGV[at + 2] .. ';'
      endedBySlot[slot] = (endedBySlot[slot] or 0) + 1
      claimOf[lane], changedClaims[lane] = false, true
      letters[n] = 'o'
      if hasMore then follow[#follow + 1] = lane end
    else
      if claimOf[lane] == nil then claimOf[lane] = claim end
      others[#others + 1] = n
    end
    at = at + 3
  end
  if next(heads) then changedRecords[FIRST_RECORDS] = heads end
  return endedBySlot
end
