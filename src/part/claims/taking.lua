-- Claims the first events of lanes for ARG_DISPATCHER.
local claimsOf, refs = {}, {}
local taken, lapsedHeld = 0, ARG_LAPSED == '1'
local isAnyOff

local function isOff(lane)
  if isAnyOff == nil then isAnyOff = redis.call('EXISTS', KEY_OFF) == 1 end
  return isAnyOff and redis.call('HGET', KEY_OFF, groupOf(lane)) == '1'
end

-- Makes a lane wait whose first event is `entry`, or retry if that is due later. `head`: as for `waitLane`.
local function queueLane(lane, entry, head)
  local attempts, lapses, due = readTries(triesOf(entry))
  local slot = slotOf(lane)
  if due > now then return retryLane(lane, due) end
  waitLane(lane, classOf(attempts, lapses), now, head)
  if sendOf[slot] ~= 111 then
    waitingOf[slot] = STOPPED
  elseif waitingOf[slot] ~= STOPPED then
    waitingOf[slot] = SOME
    giveTurn(slot)
  end
  changedCounts[slot] = true
end

-- Claims the first event of an unclaimed lane whose slot may send. Returns its entry, or nil if there is no event or the group
-- key is deactivated.
local function takeLane(lane, entry, ref, more)
  if not entry then
    setState(lane, false)
    return nil
  end
  if isOff(lane) then
    setState(lane, 'p')
    return nil
  end
  local text = triesOf(entry)
  local tries = ''
  if text then
    local attempts, lapses = readTries(text)
    lapsedHeld = lapsedHeld or lapses >= ALONE
    tries = string.format(':%.0f:%.0f', attempts, lapses)
  end
  local slot = slotOf(lane)
  removed[#removed + 1] = entry
  setClaim(lane, (more and '+' or 'c') .. ref .. ARG_DISPATCHER)
  setState(lane, false)
  flightOf[slot] = flightOf[slot] + 1
  changedCounts[slot] = true
  taken = taken + 1
  local claims = claimsOf[ref]
  if not claims then
    claims = { groupKey = string.sub(groupOf(lane), 9) }
    claimsOf[ref] = claims
    refs[#refs + 1] = ref
  end
  claims[#claims + 1] = claimText(slot, more, isUnordered(lane), tries, replayOf(lane))
  return entry
end

-- Returns the events of the new claims as text.
local function claimedEvents()
  if #refs == 0 then return '' end
  local texts, small, bodyOf = {}, {}, {}
  for i, ref in ipairs(refs) do
    local id = idOf(ref)
    local event = redis.call('XRANGE', KEY_LOG, id, id)[1]
    texts[i] = event and event[2]
    if event and tonumber(event[2][6]) <= PUSHED_BODY then small[#small + 1] = ref end
  end
  if #small > 0 then readFields(KEY_BODY, small, bodyOf) end
  for i, ref in ipairs(refs) do
    local fields = texts[i]
    if fields then
      local size = tonumber(fields[6])
      texts[i] = eventText(ref, fields[2], fields[4], size > PUSHED_BODY and '' or bodyOf[ref], size, claimsOf[ref])
    else
      texts[i] = eventText(ref, claimsOf[ref].groupKey, '', nil, 0, claimsOf[ref])
    end
  end
  return table.concat(texts)
end
