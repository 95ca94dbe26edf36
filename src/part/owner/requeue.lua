-- Continues lanes whose events changed without an attempt. Call `readSlots` first, and read the lane's state for `settleLane`.
local woken = false
local function startSlot(slot)
  changedCounts[slot] = true
  if sendOf[slot] ~= 111 then
    waitingOf[slot] = STOPPED
  elseif waitingOf[slot] ~= STOPPED then
    waitingOf[slot] = SOME
    giveTurn(slot)
    woken = true
  end
end

-- Makes a lane wait whose first event is `entry`, or retry if that is due later.
local function queueHead(lane, entry)
  local attempts, lapses, due = readTries(triesOf(entry))
  if due > now then
    woken = true
    return retryLane(lane, due)
  end
  waitLane(lane, classOf(attempts, lapses), now)
  startSlot(slotOf(lane))
end

-- Updates the state of an unclaimed lane. A waiting or parked lane keeps its state while it has an event.
local function settleLane(lane)
  local state = stateOf[lane]
  if not state then return end
  local entry = headOf(lane)
  if state == 'r' then
    redis.call('ZREM', KEY_RETRIES, lane)
    if entry then queueHead(lane, entry) else setState(lane, false) end
  elseif not entry then
    if state ~= 'p' then unwaited[#unwaited + 1] = waitOf(lane, state) end
    setState(lane, false)
  else
    forgetHead(lane, state)
  end
end

-- Publishes a wake-up for dispatchers if lanes are due.
local function tellWoken(version)
  if woken then redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, 1, 0, version or '0')) end
end
