-- Claims the first event of each lane for ARG_DISPATCHER. For each event: its claims, separated by commas, and the lane
-- of the first one.
local claimsOf, laneOf, refs = {}, {}, {}
local taken, lapsedHeld = 0, ARG_LAPSED == '1'
local isAnyOff

local function isOff(lane)
  if isAnyOff == nil then isAnyOff = redis.call('EXISTS', KEY_OFF) == 1 end
  return isAnyOff and redis.call('HGET', KEY_OFF, groupOf(lane)) == '1'
end

-- Makes a lane wait if its first event is `entry`. If the event is due later, the lane will be retried. `head` is the
-- same as in `waitLane`. `slot`: its slot, if known.
local function queueLane(lane, entry, head, slot)
  local tried, class = triesOf(entry), FIRST_ATTEMPT
  slot = slot or slotOf(lane)
  if tried then
    local attempts, lapses, due = readTries(tried)
    if due > now then return retryLane(lane, due) end
    class = classOf(attempts, lapses)
  end
  waitLane(lane, class, now, head)
  if sendOf[slot] ~= 111 then
    waitingOf[slot] = STOPPED
  elseif waitingOf[slot] ~= STOPPED then
    waitingOf[slot] = SOME
    giveTurn(slot)
  end
  changedCounts[slot] = true
end

-- Claims the first event of a lane. `claim`: its text (lanes/message.lua).
local function claimEntry(slot, lane, entry, ref, more, claim)
  removed[#removed + 1] = entry
  claimOf[lane], changedClaims[lane] = (more and '+' or 'c') .. ref .. ARG_DISPATCHER, true
  if stateOf[lane] then stateOf[lane], changedStates[lane] = false, true end
  flightOf[slot] = flightOf[slot] + 1
  changedCounts[slot] = true
  taken = taken + 1
  local claims = claimsOf[ref]
  if claims then
    claimsOf[ref] = claims .. ',' .. claim
  else
    claimsOf[ref], laneOf[ref], refs[#refs + 1] = claim, lane, ref
  end
end

-- Claims the first event of a lane which has not been claimed, if its slot is allowed to send. `tried`: its entry in
-- P:try. `plain`: whether the lane is plain (`isPlain`). It returns the event's entry. If there is no event, or if
-- the group key has been deactivated, it returns nil.
local function takeLane(slot, lane, plain, entry, ref, more, tried)
  if not entry then
    setState(lane, false)
    return nil
  end
  if isOff(lane) then
    setState(lane, 'p')
    return nil
  end
  local tries = ''
  if tried then
    local attempts, lapses = readTries(tried)
    lapsedHeld = lapsedHeld or lapses >= ALONE
    tries = string.format(':%d:%d', attempts, lapses)
  end
  local claim = plain and (more and slot .. '+' or slot) .. tries
    or claimText(slot, more, isUnordered(lane), tries, replayOf(lane))
  claimEntry(slot, lane, entry, ref, more, claim)
  return entry
end

-- Returns the fields of the new claims' events in the log, by ref. Lanes are served in turn, so that these events are
-- often close together. One command reads twice as many entries as the one before if it found more events than others.
local function readEvents()
  local MOST_READ = 64
  local sorted, idsOf, refOfId, fieldsOf = {}, {}, {}, {}
  for i, ref in ipairs(refs) do
    local id = idOf(ref)
    sorted[i], idsOf[ref], refOfId[id] = ref, id, ref
  end
  table.sort(sorted)
  local at, last, count = 1, #sorted, 1
  while at <= last do
    local page, found = redis.call('XRANGE', KEY_LOG, idsOf[sorted[at]], idsOf[sorted[last]], 'COUNT', count), 0
    for _, entry in ipairs(page) do
      local ref = refOfId[entry[1]]
      if ref then
        fieldsOf[ref] = entry[2]
        found = found + 1
      end
    end
    count = 2 * found > #page and math.min(2 * count, MOST_READ) or 1
    -- The first one may have been removed.
    repeat at = at + 1 until at > last or not fieldsOf[sorted[at]]
  end
  return fieldsOf
end

-- Returns the events of the new claims as pieces of text.
local function claimedEvents()
  local small, bodyOf, pieces = {}, {}, {}
  local fieldsOf = #refs > 0 and readEvents()
  for _, ref in ipairs(refs) do
    local fields = fieldsOf[ref]
    if fields and tonumber(fields[6]) <= PUSHED_BODY then small[#small + 1] = ref end
  end
  if #small > 0 then readFields(KEY_BODY, small, bodyOf) end
  for _, ref in ipairs(refs) do
    local claims, fields = claimsOf[ref], fieldsOf[ref]
    if fields then
      local size = tonumber(fields[6])
      addEvent(pieces, ref, fields[2], fields[4], size > PUSHED_BODY or bodyOf[ref], fields[12], size, claims)
    else
      addEvent(pieces, ref, string.sub(groupOf(laneOf[ref]), 9), '', false, '', 0, claims)
    end
  end
  return pieces
end
