-- Appends events to lanes that `readSlots`, `readClaims` and `readStates` have read. A call says in its message which claimed
-- lanes have more behind them now, and whether lanes wait.
local TOKEN_BYTES = 16384
local behind, waiting = {}, false
local packed = {}

-- A slot in 5 bytes.
local function packSlot(slot)
  local text = packed[slot] or struct.pack('>I5', tonumber(slot, 32))
  packed[slot] = text
  return text
end

local function tokensOf(bytes) return math.ceil(math.max(1, bytes) / TOKEN_BYTES) end

-- Counts an event as routed, and adds it to its lane where that is not idle; else returns false.
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

-- Lets an idle lane wait with its first event.
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
    -- Nobody completes anything there: who should have claimed may have missed the message.
    waiting = true
  elseif waitingOf[slot] == SOME and flightOf[slot] < limitOf[slot] and not redis.call('ZSCORE', KEY_TURNS, slot) then
    -- Only retries wait there, more than may go.
    giveTurn(slot)
    waiting = true
  end
end
