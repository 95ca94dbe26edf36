-- The rows (P:subs) and the counters (P:n) of slots. A row: route (o, p, c), send (o, h), order (o, u), cap (5), pace
-- (5, attempts a second or 00000), enabled (13, ms), since (15), then fields that scripts do not read. A slot can have
-- up to twice as many claims as its cap, because a claim is kept until its completion has been written. Counters: in
-- flight, routed, waiting, delivered, dead, expired, skipped, replayed. After the first exchange, they are followed by
-- the delivery status (claims/news.lua). Test events are not included in any of the counters except for in flight.
-- If an event ends during an attempt (owner/ended.lua), it is counted as ended and as in flight until the attempt is
-- over.
-- During this time, the number of waiting events that is calculated from the counters is one too low.
-- Waiting describes the state of the lanes which are waiting for this slot. If there are any lanes waiting, nothing is
-- pushed. This ensures that an event can't overtake another one:
--   0  no lane waits
--   1  some lanes wait: the slot has a turn, or is at its limit of claims (retries: at three quarters of it) and gets a
--      turn when a claim ends or with a first attempt
--   2  the slot is stopped: the gate or a wake-up in P:retry starts it and gives it a turn
--   3  no lane waits, but only an exchange may claim: the breaker is open
local NONE, SOME, STOPPED, ASK = '0', '1', '2', '3'
local NO_COUNTS = { 0, 0, '0', ' 0 0 0 0 0' }
local routeOf, sendOf, orderOf, limitOf, paceOf, enabledOf = {}, {}, {}, {}, {}, {}
local flightOf, routedOf, waitingOf, endedOf = {}, {}, {}, {}
local changedCounts = {}

-- Reads all slots of a list which have not been read before. If there is no row for a slot, its route is nil and it has
-- a limit of 0 claims.
local function readSlots(slots)
  local ask = {}
  for _, slot in ipairs(slots) do
    if flightOf[slot] == nil then
      ask[#ask + 1] = slot
      flightOf[slot] = 0
    end
  end
  for from = 1, #ask, 4000 do
    local till = math.min(#ask, from + 3999)
    local rows = redis.call('HMGET', KEY_SUBS, unpack(ask, from, till))
    local counts = redis.call('HMGET', KEY_COUNTS, unpack(ask, from, till))
    for i, row in ipairs(rows) do
      local slot = ask[from + i - 1]
      local count = counts[i]
      if row then
        routeOf[slot], sendOf[slot], orderOf[slot] = string.byte(row, 1, 3)
        limitOf[slot] = 2 * tonumber(string.sub(row, 4, 8))
        paceOf[slot] = tonumber(string.sub(row, 9, 13))
        enabledOf[slot] = string.sub(row, 14, 26)
      else
        limitOf[slot], paceOf[slot], enabledOf[slot] = 0, 0, '0'
      end
      if count then
        local flight, routed, waiting, ended = string.match(count, '^(%d+) (%d+) (%d)(.*)$')
        flightOf[slot], routedOf[slot] = tonumber(flight), tonumber(routed)
        waitingOf[slot], endedOf[slot] = waiting, ended
      else
        flightOf[slot], routedOf[slot], waitingOf[slot], endedOf[slot] = unpack(NO_COUNTS)
      end
    end
  end
end

-- Counters of ends: d(elivered), x (dead), e(xpired), s(kipped), and r(eplayed). A call parses the counters once and
-- then writes them as text.
local endsBySlot = {}
local function endsOf(slot)
  local ends = endsBySlot[slot]
  if ends then return ends end
  local d, x, e, s, r, note = string.match(endedOf[slot], '^ (%d+) (%d+) (%d+) (%d+) (%d+)(.*)$')
  ends = { d = tonumber(d), x = tonumber(x), e = tonumber(e), s = tonumber(s), r = tonumber(r), note = note }
  endsBySlot[slot] = ends
  return ends
end

local function addCount(slot, what, by)
  local ends = endsOf(slot)
  ends[what] = ends[what] + by
  changedCounts[slot] = true
end

-- Removes a claim from the claims that are in flight. If the counters were restored, they don't include claims that
-- were made before the data was lost.
local function leaveFlight(slot)
  flightOf[slot] = math.max(0, flightOf[slot] - 1)
  changedCounts[slot] = true
end

local function writeCounts()
  local set = {}
  for slot, ends in pairs(endsBySlot) do
    endedOf[slot] = string.format(' %d %d %d %d %d', ends.d, ends.x, ends.e, ends.s, ends.r) .. ends.note
  end
  for slot in pairs(changedCounts) do
    set[#set + 1] = slot
    set[#set + 1] = string.format('%d %d ', flightOf[slot], routedOf[slot]) .. waitingOf[slot] .. endedOf[slot]
  end
  setFields(KEY_COUNTS, set)
  changedCounts = {}
end
