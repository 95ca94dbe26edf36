-- Claims lanes that wait, slot by slot in turn: what was served longest ago comes first. In a slot first attempts come before
-- retries, of each those that are due longest. A quarter of its claims stays for first attempts: an endpoint that hangs
-- would be filled with retries. Where there are more first attempts than may go, an eighth of those that go are retries.
local SLOTS = 32

-- Retries that are due wait like others; slots that were stopped until now have a turn.
local function wakeDue()
  local due = redis.call('ZRANGEBYSCORE', KEY_RETRIES, '-inf', now, 'LIMIT', 0, 64)
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

-- Members of P:wait of one class, at most `most`.
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
  local lapsed = #chosen < most and not lapsedHeld and waitingIn(slot, LAPSED, 1)[1]
  if lapsed then chosen[#chosen + 1] = lapsed end
  return chosen
end

local function stopSlot(slot, untilMs)
  waitingOf[slot] = STOPPED
  changedCounts[slot] = true
  if untilMs then redis.call('ZADD', KEY_RETRIES, string.format('%.0f', untilMs), slot .. '\2') end
end

-- Claims of one slot, at most `share`. Returns whether it keeps its turn, and whether more could be claimed at once.
local function serveSlot(slot, share)
  if sendOf[slot] ~= 111 then return stopSlot(slot) end
  local health = healthOf(slot)
  if health and health.disabled ~= '-' then return stopSlot(slot) end
  local isProbing = health and health.pause > 0
  if isProbing and now < health.next then return stopSlot(slot, health.next) end
  local free = limitOf[slot] - flightOf[slot]
  -- What ends gives it a turn again.
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
    local lanes = {}
    redis.call('ZREM', KEY_WAITING, unpack(chosen))
    for i, member in ipairs(chosen) do lanes[i] = slot .. string.sub(member, 21) end
    readFields(KEY_LANES, lanes, stateOf)
    for i, lane in ipairs(lanes) do
      if stateOf[lane] == 'w' .. string.sub(chosen[i], 9, 20) then entry = takeLane(lane, headOf(lane)) or entry end
    end
    -- What could not be taken waits again.
    writeLanes()
  end
  if allowed and taken > before then takeFromBucket(slot, empty, taken - before) end
  if isProbing and entry then
    noteProbe(slot, health, entry)
    return stopSlot(slot, health.next)
  end
  local left = redis.call('ZRANGEBYLEX', KEY_WAITING, '[' .. slot, '(' .. slot .. '3', 'LIMIT', 0, 1)[1]
  waitingOf[slot] = left and SOME or isProbing and ASK or NONE
  changedCounts[slot] = true
  if left and allowed and allowed == taken - before then return stopSlot(slot, math.ceil(empty + full)) end
  return left and flightOf[slot] < limitOf[slot], left and #chosen >= most
end

-- Returns 1 where more may be claimed at once.
local function claim()
  local more, before = 0, taken
  local slots = redis.call('ZRANGE', KEY_TURNS, 0, SLOTS - 1)
  if #slots == 0 then return 0 end
  readSlots(slots)
  local share = math.max(1, math.ceil((budget - taken) / #slots))
  local on, off = {}, {}
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
  if #on > 0 then redis.call('ZADD', KEY_TURNS, unpack(on)) end
  -- Others have not been looked at. Where nothing came of this look another one would not end.
  if taken < budget and (taken > before or #off > 0) and redis.call('ZCARD', KEY_TURNS) > #on / 2 then more = 1 end
  return more
end
