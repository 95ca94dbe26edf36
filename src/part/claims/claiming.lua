-- Claims lanes that are waiting, one slot at a time. The slot that was served the longest time ago is first. Within a
-- slot, first attempts are claimed before retries. Lanes that are due earlier are claimed first. We reserve a quarter
-- of the claims for first attempts. Without them, an endpoint that is stalled would only receive retries. If there are
-- more first attempts than are allowed, retries will still get an eighth of the claims. In an eighth of the calls, an
-- event that has to be claimed alone is claimed before the last of them.
local wakeDue, claim
do
  local SLOTS = 32
  local LOOKS = 4

  -- If a retry is due, it has to wait in the same way as other lanes. If the stop of a slot has ended, the slot is
  -- given a turn.
  function wakeDue()
    local due = redis.call('ZRANGEBYSCORE', KEY_RETRIES, '-inf', string.format('%d', now), 'LIMIT', '0', '64')
    if #due == 0 then return end
    redis.call('ZREM', KEY_RETRIES, unpack(due))
    local slots, lanes = {}, {}
    for _, lane in ipairs(due) do
      slots[#slots + 1] = slotOf(lane)
      if string.byte(lane, 9) ~= 2 then lanes[#lanes + 1] = lane end
    end
    readSlots(slots)
    readFields(KEY_LANES, lanes, stateOf)
    for _, lane in ipairs(due) do
      local slot = slotOf(lane)
      if string.byte(lane, 9) == 2 then
        waitingOf[slot] = SOME
        changedCounts[slot] = true
        giveTurn(slot)
      elseif stateOf[lane] == 'r' then
        local entry = headOf(lane)
        if entry then
          queueLane(lane, entry)
        else
          setState(lane, false)
        end
      end
    end
    writeLanes()
  end

  -- Returns up to `most` members of P:wait for a single class.
  local function waitingIn(slot, class, most)
    if most <= 0 then return {} end
    local from, till = '[' .. slot .. class, '(' .. slot .. (class + 1)
    return redis.call('ZRANGEBYLEX', KEY_WAITING, from, till, 'LIMIT', 0, most)
  end

  local function chooseLanes(slot, most, free)
    local chosen = waitingIn(slot, FIRST_ATTEMPT, most + 1)
    local rest = #chosen > most and math.floor((most + now % 8) / 8) or most - #chosen
    local retries = waitingIn(slot, RETRY, math.min(rest, free - math.floor(limitOf[slot] / 4)))
    while #chosen > most - #retries do chosen[#chosen] = nil end
    for _, member in ipairs(retries) do chosen[#chosen + 1] = member end
    local hasPlace = #chosen < most or now % 8 == 7
    local lapsed = hasPlace and not lapsedHeld and waitingIn(slot, LAPSED, 1)[1]
    if lapsed then chosen[math.min(#chosen + 1, most)] = lapsed end
    return chosen
  end

  -- Claims all lanes of `chosen` which still have the same state. It returns the entry of the last lane. If we know the
  -- first events of the lanes, a single command is enough to check all of them. This is needed because they may have
  -- been removed.
  local function takeChosen(slot, chosen)
    local lanes, entries, entryAt, plain, last, known = {}, {}, {}, {}, nil, 0
    for i, member in ipairs(chosen) do lanes[i] = slot .. string.sub(member, 21) end
    readFields(KEY_LANES, lanes, stateOf)
    for i, lane in ipairs(lanes) do
      local state = stateOf[lane]
      if not state or string.sub(state, 2, NO_HEAD) ~= string.sub(chosen[i], 9, 20) then
        lanes[i] = false
      else
        plain[i] = isPlain(lane)
        if #state > NO_HEAD or isUnordered(lane) then
          local ref = string.sub(state, NO_HEAD + 1, HEAD_ALONE)
          known = known + 1
          entries[known], entryAt[i] = plain[i] and lane .. '\0' .. ref or entryOf(lane, ref), known
        end
      end
    end
    local scores = known > 0 and redis.call('ZMSCORE', KEY_PENDING, unpack(entries))
    for i, lane in ipairs(lanes) do
      local entry = scores and scores[entryAt[i]] and entries[entryAt[i]]
      if entry then
        local more = #stateOf[lane] > HEAD_ALONE
        last = takeLane(slot, lane, plain[i], entry, string.sub(entry, -15), more, triesOf(entry)) or last
      elseif lane then
        local head, ref, more = headOf(lane)
        last = takeLane(slot, lane, plain[i], head, ref, more, head and triesOf(head)) or last
      end
    end
    return last
  end

  local function stopSlot(slot, untilMs)
    waitingOf[slot] = STOPPED
    changedCounts[slot] = true
    if untilMs then redis.call('ZADD', KEY_RETRIES, string.format('%.0f', untilMs), slot .. '\2') end
  end

  -- Claims up to `share` lanes of a slot. It returns whether the slot should keep its turn, and whether it is possible
  -- to claim more of them immediately.
  local function serveSlot(slot, share)
    if sendOf[slot] ~= 111 then return stopSlot(slot) end
    local health = healthOf(slot)
    if health and health.disabled ~= '-' then return stopSlot(slot) end
    local isProbing = health and health.pause > 0
    if isProbing and now < health.next then return stopSlot(slot, health.next) end
    local free = limitOf[slot] - flightOf[slot]
    -- When a claim ends, the slot is given a turn.
    if free <= 0 then return end
    local most, allowed, empty, full = math.min(share, free, budget - taken), nil, nil, nil
    if paceOf[slot] > 0 then
      allowed, empty, full = bucketOf(slot)
      if allowed < 1 then return stopSlot(slot, math.ceil(empty + full)) end
      most = math.min(most, allowed)
    end
    if isProbing then most = math.min(most, 1) end
    local before, entry = taken, nil
    local chosen = chooseLanes(slot, most, free)
    if #chosen > 0 then
      redis.call('ZREM', KEY_WAITING, unpack(chosen))
      entry = takeChosen(slot, chosen)
    end
    if allowed and taken > before then empty = takeFromBucket(slot, empty, taken - before) end
    if isProbing and entry then
      noteProbe(slot, health, entry)
      return stopSlot(slot, health.next)
    end
    local left = redis.call('ZRANGEBYLEX', KEY_WAITING, '[' .. slot, '(' .. slot .. '3', 'LIMIT', '0', '1')[1]
    waitingOf[slot] = left and SOME or isProbing and ASK or NONE
    changedCounts[slot] = true
    if left and allowed and allowed == taken - before then return stopSlot(slot, math.ceil(empty + full)) end
    -- Only retries are waiting, and more of them than are allowed. The slot is given a turn by a first attempt, or when
    -- a claim ends.
    if left and #chosen == 0 and string.byte(left, 9) == RETRY then return end
    return left and flightOf[slot] < limitOf[slot], left and #chosen >= most
  end

  -- Claims the lanes of all slots that have a turn, starting with the index `from`. If a slot should keep its turn, it
  -- is added to `on`. This returns 1 if it is possible to claim more of them immediately. It also returns whether
  -- nothing was claimed even though there are other slots that have a turn.
  local function serveTurns(from, on)
    local more, before = 0, taken
    local slots = redis.call('ZRANGE', KEY_TURNS, from, from + SLOTS - 1)
    if #slots == 0 then return 0, false end
    readSlots(slots)
    local share = math.max(1, math.ceil((budget - taken) / #slots))
    local off = {}
    for _, slot in ipairs(slots) do
      if taken >= budget then
        more = 1
        break
      end
      local keeps, hasMore = serveSlot(slot, share)
      if keeps then
        on[#on + 1] = string.format('%.0f', now)
        on[#on + 1] = slot
        if hasMore then more = 1 end
      else
        off[#off + 1] = slot
      end
    end
    writeLanes()
    if #off > 0 then redis.call('ZREM', KEY_TURNS, unpack(off)) end
    local areOthers = taken < budget and redis.call('ZCARD', KEY_TURNS) > #on / 2
    local isVain = taken == before and #off == 0
    if areOthers and not isVain then more = 1 end
    return more, areOthers and isVain and more == 0
  end

  -- Returns 1 if it is possible to claim more of them immediately. If nothing was claimed, this continues with the next
  -- slots (up to `LOOKS` times), because it is possible that all slots only have events whose claims have lapsed.
  function claim()
    local on, more, isVain = {}, nil, nil
    for look = 0, LOOKS - 1 do
      more, isVain = serveTurns(look * SLOTS, on)
      if not isVain then break end
    end
    if #on > 0 then redis.call('ZADD', KEY_TURNS, unpack(on)) end
    return more
  end
end
