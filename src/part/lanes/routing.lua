-- Appends events to lanes that were read before. The message of a call lists claimed lanes with new events, and contains
-- whether lanes wait.
local TOKEN_BYTES = 16384
local behind, waiting = {}, false

local function tokensOf(bytes) return math.ceil(math.max(1, bytes) / TOKEN_BYTES) end

-- Counts an event as routed and adds it to its lane. Returns false, without adding it, if the lane is idle.
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

-- Makes an idle lane wait with its first event.
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
    -- No claim of the slot will complete: the dispatcher may have missed the message.
    waiting = true
  elseif waitingOf[slot] == SOME and flightOf[slot] < limitOf[slot] and not redis.call('ZSCORE', KEY_TURNS, slot) then
    -- Only retries wait, and more than may be claimed.
    giveTurn(slot)
    waiting = true
  end
end
