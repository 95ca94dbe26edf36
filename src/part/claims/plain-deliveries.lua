-- Ends attempts which have delivered the event of a plain lane (`isPlain`) for the holder of its claim. Most attempts
-- end in this way, so it takes fewer steps than completing.lua, which ends all others. Each attempt has three
-- arguments, starting at `at`: lane, ref, note (completing.lua). The records of all of them are in the first key of
-- records and have been read. There are no other attempts for their slots in the same call.
-- Adds the numbers (from 1) of the attempts that it has not ended to `others`, and (slot, lane)* of those with more
-- events to `follow`. Returns the number of attempts that were ended for each slot.
local function endPlain(at, count, letters, others, follow)
  local lanes, entries, endedBySlot = {}, {}, {}
  for n = 1, count do lanes[n] = ARGV[at + 3 * n - 3] end
  local claims = redis.call('HMGET', KEY_CLAIMS, unpack(lanes))
  if hasTries == nil then hasTries = redis.call('EXISTS', KEY_TRIES) == 1 end
  for n = 1, hasTries and count or 0 do entries[n] = lanes[n] .. '\0' .. ARGV[at + 3 * n - 2] end
  local tries = hasTries and redis.call('HMGET', KEY_TRIES, unpack(entries)) or entries
  -- An event's attempts are often next to each other. The following texts are the same for all of these attempts: its
  -- claims without and with more events in the lane, and the start of its records (age, attempts).
  local last, alone, followed, head
  local records, changed, follows = recordsAt[FIRST_RECORDS], {}, 0
  for n = 1, count do
    local lane, ref, claim = lanes[n], ARGV[at + 1], claims[n]
    if ref ~= last then
      local mine = ref .. ARG_DISPATCHER
      last, alone, followed, head = ref, 'c' .. mine, '+' .. mine, 'd' .. ageOf(ref) .. ' 1 '
    end
    local hasMore = claim == followed
    -- A lane that is in this call twice has one claim.
    if (hasMore or claim == alone) and not tries[n] and claimOf[lane] == nil then
      local slot, had = string.sub(lane, 1, 8), records[ref]
      changed[ref] = true
      if #had > CHUNK_BYTES then had = partlyFull(FIRST_RECORDS, ref, had) end
      records[ref] = had .. (packedSlots[slot] or packSlot(slot)) .. head .. ARGV[at + 2] .. ';'
      endedBySlot[slot] = (endedBySlot[slot] or 0) + 1
      claimOf[lane], changedClaims[lane] = false, true
      letters[n] = 'o'
      if hasMore then
        follow[follows + 1], follow[follows + 2] = slot, lane
        follows = follows + 2
      end
    else
      if claimOf[lane] == nil then claimOf[lane] = claim end
      others[#others + 1] = n
    end
    at = at + 3
  end
  if next(changed) then changedRecords[FIRST_RECORDS] = changed end
  return endedBySlot
end
