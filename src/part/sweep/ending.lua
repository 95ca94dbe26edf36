-- Ends all open events which are removed by retention, and continues their lanes. If there is an attempt in progress
-- for an event, it holds its lane until it is over (owner/ended.lua). Before you call `expireEvent` for an event, you
-- must have read its slots, claims, states, and records. At the end, you must call `continueLanes`.
local NO_NOTE = 'retention -'
-- How many failed deliveries of a slot are listed. All others are only counted.
local MOST_LISTED = 100000
local listedOf = {}
local function isListFull(slot)
  listedOf[slot] = listedOf[slot] or redis.call('ZLEXCOUNT', KEY_FINAL, '[' .. slot, '(' .. slot .. '\255')
  return listedOf[slot] >= MOST_LISTED
end

local expired, freed, tried, finals = 0, {}, {}, {}
-- Lane → the last of its waiting entries that was ended.
local lastEnded, endedLanes = {}, {}

-- Ends a single event. `lane` is the lane by which it is claimed or held. `claimed` specifies if it has been claimed.
local function expireEvent(slot, lane, entry, ref, replay, at, claimed)
  if claimed then
    setClaim(lane, markEnded(claimOf[lane]))
  else
    freed[#freed + 1] = entry
    if not lastEnded[lane] then endedLanes[#endedLanes + 1] = lane end
    lastEnded[lane] = entry
  end
  local text = triesOf(entry)
  if text then tried[#tried + 1] = entry end
  local attempts, _, _, failed = readTries(text)
  if usesQuota(lane) then addBytes(-openCost(failed)) end
  -- If a subscription was deleted, its records will never be read again.
  if not routeOf[slot] then return end
  if not isListFull(slot) then
    local name = recordName(ref, replay)
    if not at or addRecord(at, name, ref, slot, 'e', attempts, NO_NOTE, failed) then
      finals[#finals + 1] = '0'
      finals[#finals + 1] = slot .. name
    end
  end
  if not isTest(lane) then addCount(slot, 'e', 1) end
  expired = expired + 1
end

-- A script can have at most 200 local variables.
local continueLanes
do
  -- Makes the next event of a lane wait. It does not become due any earlier than before.
  local function queueHead(lane, entry)
    local attempts, lapses, due = readTries(triesOf(entry))
    if due > now then return retryLane(lane, due) end
    local slot = slotOf(lane)
    waitLane(lane, classOf(attempts, lapses), now)
    if sendOf[slot] ~= 111 then
      waitingOf[slot] = STOPPED
    elseif waitingOf[slot] ~= STOPPED then
      waitingOf[slot] = SOME
      giveTurn(slot)
      waiting = true
    end
    changedCounts[slot] = true
  end

  local function continueLane(lane)
    local state, last = stateOf[lane], lastEnded[lane]
    local head = headOf(lane)
    if state == 'r' then
      -- The lane was waiting for a retry of its first event.
      if head and head < last then return end
      redis.call('ZREM', KEY_RETRIES, lane)
      if head then queueHead(lane, head) else setState(lane, false) end
    elseif state and not head then
      if state ~= 'p' then unwaited[#unwaited + 1] = waitOf(lane, state) end
      setState(lane, false)
    elseif state then
      keepLane(lane, state, head)
    end
  end

  function continueLanes()
    inSlices('ZREM', KEY_PENDING, freed)
    for _, lane in ipairs(endedLanes) do continueLane(lane) end
    inSlices('HDEL', KEY_TRIES, tried)
    inSlices('ZADD', KEY_FINAL, finals)
    writeLanes()
    writeCounts()
    writeRecords()
    writeBytes()
  end
end
