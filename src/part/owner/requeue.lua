-- Continues lanes if their events have been changed without an attempt. You need to call `readSlots` first. For
-- `settleLane`, you also need to read the lane state.
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

-- Makes a lane wait if its first event is `entry`. If the event is due later, the lane will be retried.
local function queueHead(lane, entry)
  local attempts, lapses, due = readTries(triesOf(entry))
  if due > now then
    woken = true
    return retryLane(lane, due)
  end
  waitLane(lane, classOf(attempts, lapses), now)
  startSlot(slotOf(lane))
end

-- Updates the lane state which has not been claimed. If a lane is waiting or parked, it keeps its state as long as
-- it has an event that is due.
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
  elseif keepLane(lane, state, entry) then
    woken = true
  end
end

-- If there are lanes that are due, this publishes a wake-up for dispatchers.
local function tellWoken(version)
  if woken then redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, 1, 0, version or '0')) end
end
