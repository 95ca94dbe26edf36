-- Appends events to lanes which have been read before. The call message contains a list of all claimed lanes that
-- have new events, and whether there are lanes waiting.
local TOKEN_BYTES = 16384
local behind, waiting = {}, false

local function tokensOf(bytes) return math.ceil(math.max(1, bytes) / TOKEN_BYTES) end

-- Counts an event as routed, and adds it to its lane. If the lane is idle, the event is not added and this returns
-- false.
local function joinsLane(slot, lane, entry)
  local claim = claimOf[lane]
  routedOf[slot] = routedOf[slot] + 1
  changedCounts[slot] = true
  if claim then
    addEntry(entry)
    if string.byte(claim) == CLAIMED then
      setClaim(lane, '+' .. string.sub(claim, 2))
      behind[#behind + 1] = #lane .. ' ' .. lane
    end
    return true
  end
  local state = stateOf[lane]
  if not state then return false end
  addEntry(entry)
  if #state == HEAD_ALONE then setState(lane, state .. '+') end
  return true
end

-- Makes an idle lane wait, using its first event.
local function letWait(slot, lane, entry)
  addEntry(entry)
  waitLane(lane, FIRST_ATTEMPT, now)
  if sendOf[slot] ~= 111 then
    waitingOf[slot] = STOPPED
  elseif waitingOf[slot] == NONE or waitingOf[slot] == ASK then
    waitingOf[slot] = SOME
    giveTurn(slot)
    waiting = true
  elseif waitingOf[slot] == SOME and flightOf[slot] == 0 then
    -- There will not be a completion for any claim of the slot, because the dispatcher might have missed the message.
    waiting = true
  elseif waitingOf[slot] == SOME and flightOf[slot] < limitOf[slot] and not redis.call('ZSCORE', KEY_TURNS, slot) then
    -- Only retries are waiting, and more of them than can be claimed.
    giveTurn(slot)
    waiting = true
  end
end
