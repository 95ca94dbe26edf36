-- A lane is a slot (8 characters), followed by a group key. For a replay, this is followed by \1 .. replay id. If there
-- is no order, each event has a separate lane, which is followed by NUL .. ref. For the test events of a slot, the lane
-- is the slot itself. In P:pend, a waiting event is stored as the lane without its ref, followed by NUL and the ref.
-- This is the event's entry. It is also used in P:try. At any time, a lane is in one of these states:
--   idle       in neither hash
--   claimed    P:cl: flag .. ref .. dispatcher. Flags: c (no event behind it), + (there may be more). The claimed event
--              is not in P:pend
--   waiting    P:lane: w .. class .. due (11 hex), the same as its member of P:wait: slot .. class .. due .. rest of
--   the lane.
--              Classes: 0 first attempts, 1 retries, 2 events whose claims expired more than once. The ref of its first
--              event may follow, and + if there are more. A change that does not append an event removes both
--              (`forgetHead`)
--   retrying   P:lane: r, and a member of P:retry with its due time as score
--   parked     P:lane: p. P:off marked its group key as deactivated when it was due to be claimed. Activating it
--   unparks it
-- If a slot has lanes that are waiting, it is in P:turn, at its limit of claims, stopped (lib counts), or is not
-- allowed to send.
local FIRST_ATTEMPT, RETRY, LAPSED = '0', '1', '2'
local CLAIMED = 99
-- The number of characters in the state of a waiting lane without its first event, and with exactly one event.
local NO_HEAD, HEAD_ALONE = 13, 28

local function slotOf(lane) return string.sub(lane, 1, 8) end
local function groupOf(lane) return string.match(lane, '^[^%z\1]*') end
local function isUnordered(lane) return string.byte(lane, -16) == 0 end
local function entryOf(lane, ref) return isUnordered(lane) and lane or (lane .. '\0' .. ref) end
local function replayOf(lane) return string.find(lane, '\1', 9, true) and string.match(lane, '\1([^%z]+)') or nil end
-- Whether a lane is ordered, and neither of a replay nor of test events.
local function isPlain(lane) return #lane > 8 and not string.find(lane, '[%z\1]', 9) end
local function isTest(lane)
  local after = string.byte(lane, 9)
  return not after or after == 0
end

local packedSlots = {}
-- Returns a slot packed into 5 bytes.
local function packSlot(slot)
  local bytes = packedSlots[slot]
  if not bytes then
    bytes = struct.pack('>I5', tonumber(slot, 32))
    packedSlots[slot] = bytes
  end
  return bytes
end

-- Returns the first event that is waiting in a lane as (entry, ref, whether there are more). If there are none, it
-- returns nil. `plain`: whether the lane is known to be plain (`isPlain`).
local function headOf(lane, plain)
  if not plain and isUnordered(lane) then
    if redis.call('ZSCORE', KEY_PENDING, lane) then return lane, string.sub(lane, -15), false end
    return nil
  end
  local head = redis.call('ZRANGEBYLEX', KEY_PENDING, '[' .. lane .. '\0', '(' .. lane .. '\1', 'LIMIT', '0', '2')
  if not head[1] then return nil end
  return head[1], string.sub(head[1], #lane + 2), head[2] ~= nil
end

-- The claims and states of each lane. If there is none, this is false. Changes are written by `writeLanes`.
local claimOf, stateOf = {}, {}
local changedClaims, changedStates = {}, {}
local added, removed, waits, unwaited, retried, turns = {}, {}, {}, {}, {}, {}

-- Redis only accepts about 8,000 values of a table in each call.
local function inSlices(command, key, values)
  for from = 1, #values, 4000 do
    redis.call(command, key, unpack(values, from, math.min(#values, from + 3999)))
  end
end

local function readFields(key, fields, into)
  for from = 1, #fields, 4000 do
    local till, before = math.min(#fields, from + 3999), from - 1
    local values = redis.call('HMGET', key, unpack(fields, from, till))
    for i = 1, till - before do into[fields[before + i]] = values[i] end
  end
end

local function setClaim(lane, claim)
  claimOf[lane] = claim
  changedClaims[lane] = true
end

local function setState(lane, state)
  stateOf[lane] = state
  changedStates[lane] = true
end

local function addEntry(entry)
  local n = #added
  added[n + 1], added[n + 2] = '0', entry
end

-- Makes an idle lane wait until it is claimed. `head` is the ref of its first event, followed by + if there are more
-- events. If it is not known, this is nil.
local function waitLane(lane, class, due, head)
  if due ~= waits.due then waits.due, waits.text = due, string.format('%011x', due) end
  local text = class .. waits.text
  stateOf[lane], changedStates[lane] = 'w' .. text .. (head or ''), true
  local n = #waits
  waits[n + 1], waits[n + 2] = '0', string.sub(lane, 1, 8) .. text .. string.sub(lane, 9)
end

-- Removes the first event from the state of a lane that is waiting, because it might be out of date.
local function forgetHead(lane, state)
  if #state > NO_HEAD then setState(lane, string.sub(state, 1, NO_HEAD)) end
end

-- Returns the member of P:wait to use for a lane that is waiting.
local function waitOf(lane, state) return slotOf(lane) .. string.sub(state, 2, NO_HEAD) .. string.sub(lane, 9) end

local function retryLane(lane, due)
  setState(lane, 'r')
  retried[#retried + 1] = string.format('%.0f', due)
  retried[#retried + 1] = lane
end

-- Adds a slot behind all slots that already have a turn. A slot at its limit loses its turn and is given another one
-- when a claim ends. If it were the first one each time, such slots could prevent others from being served.
local function giveTurn(slot)
  if turns[slot] then return end
  turns[slot] = true
  turns[#turns + 1] = string.format('%d', now)
  turns[#turns + 1] = slot
end

-- Writes (field, value)*. Redis keeps a hash with up to 512 fields in a list, and reads the list from its start for
-- each field. A name with more than 64 bytes turns it into a table, which it stays until it is empty. The long name is
-- only used if many fields are written because it takes two more steps.
local function setFields(key, values)
  local n, isMany = #values, #values > 32
  local LONG_NAME = '-----------------------------------------------------------------'
  if isMany then values[n + 1], values[n + 2] = LONG_NAME, '' end
  inSlices('HSET', key, values)
  if isMany then redis.call('HDEL', key, LONG_NAME) end
end

local function writeHash(key, values, changed)
  local set, gone, n = {}, {}, 0
  for field in pairs(changed) do
    local value = values[field]
    if value then
      set[n + 1], set[n + 2] = field, value
      n = n + 2
    else
      gone[#gone + 1] = field
    end
  end
  setFields(key, set)
  inSlices('HDEL', key, gone)
end

local function writeLanes()
  writeHash(KEY_CLAIMS, claimOf, changedClaims)
  writeHash(KEY_LANES, stateOf, changedStates)
  inSlices('ZREM', KEY_PENDING, removed)
  inSlices('ZADD', KEY_PENDING, added)
  inSlices('ZREM', KEY_WAITING, unwaited)
  inSlices('ZADD', KEY_WAITING, waits)
  inSlices('ZADD', KEY_RETRIES, retried)
  for from = 1, #turns, 4000 do
    redis.call('ZADD', KEY_TURNS, 'NX', unpack(turns, from, math.min(#turns, from + 3999)))
  end
  changedClaims, changedStates = {}, {}
  added, removed, waits, unwaited, retried, turns = {}, {}, {}, {}, {}, {}
end
