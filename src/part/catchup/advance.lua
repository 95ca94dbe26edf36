#!lua
-- Continues routing from the position of a part that is held back. If it is not held back, this is done for
-- subscriptions that are behind. If several subscriptions are at the same position, they are moved together. The ones
-- that are closest to the tail are moved first. When they have reached the tail, they become live in the same step.
--@unconfirmed
--@keys meta log keys subs positions late claims lanes pending waiting turns retries counts channel lists reasons skips
--@args gen
-- Returns {OK, number of entries, number of references, 1 if there is more to do, hold or ''}, or one word: GONE,
-- CLOSED (control data is missing). A position can only be moved over whole entries. If an event has more references
-- than a call is allowed to write, it is routed in slices. Each slice uses some of the fields of its group key. If an
-- activation was made in the meantime, it has a later `since`. The `slice` field of P:meta is used to store the next
-- field, and the number of live slots that already have the event. If there is nothing to route, this counts the events
-- which have been skipped by slots (P:skips). If Redis is out of memory, the whole call is rejected (there is no
-- allow-oom).
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/message.lua
--@include ../lanes/routing.lua
--@include ../gate/activations.lua
--@include ../log/cost.lua
--@include ../stored/open-cost.lua
--@include ../lists/packing.lua
--@include ../lists/lists.lua
--@include ../../redis/scripts/lib/traffic.lua
--@include ../reasons/reasons.lua
--@include skips.lua
-- While this runs, no other event of the Redis node is accepted or delivered. For this reason, a call ends when it has
-- written ENOUGH references. It only writes up to REFERENCES if a single event has that many.
local ENTRIES, PAGE, ENOUGH, REFERENCES, OPEN, CLOSED = 256, 64, 64, 512, 111, 99
local FIELDS = {
  'ready', 'gen', 'tail', 'hold', 'pos', 'slice', 'used', 'granted', 'bytes', 'version', 'in', 'need', 'out', 'live', 'why',
  'cohort',
}
local meta = {}
for i, value in ipairs(redis.call('HMGET', KEY_META, unpack(FIELDS))) do meta[FIELDS[i]] = value end
if meta.gen and meta.gen ~= ARG_GEN then return { 'GONE' } end
if meta.ready ~= '1' or redis.call('HEXISTS', KEY_KEYS, '') == 0 then return { 'CLOSED' } end
local tail, hold = tailOf(meta.tail), meta.hold
-- The positions of slots. Positions are only read where they are needed because many slots can be paused.
local positions = {}

-- The slots that should be moved. For all live slots, this is nil.
local cohort, members, position, others

--@include cohort.lua
local function goesAlong(slot)
  if cohort then return cohort[slot] end
  return routeOf[slot] == OPEN and not positions[slot]
end

-- (slot, since)* from a field of P:keys. `others`: where the entries of all other slots that are not closed start in its
-- `text`. Their positions are only read if they are needed, because most slots of a group key can be paused.
local listsOf = {}
local function readList(groupKey, number)
  local FEW = 16
  local name = nameOf(groupKey, number)
  if listsOf[name] then return listsOf[name] end
  local text = redis.call('HGET', KEY_KEYS, name) or ''
  local list, starts, slots, rows, open = { groups = groupsOf(text), text = text, others = {} }, {}, {}, {}, {}
  if cohort and #members <= FEW then
    for _, slot in ipairs(members) do starts[#starts + 1] = positionIn(text, slot) end
  else
    for at = 1, #text - SUFFIX, ENTRY do starts[#starts + 1] = at end
  end
  for i, at in ipairs(starts) do slots[i] = string.sub(text, at, at + 7) end
  if not cohort and #slots > 0 then
    rows = redis.call('HMGET', KEY_SUBS, unpack(slots))
    for i, slot in ipairs(slots) do
      if rows[i] and string.byte(rows[i]) == OPEN then open[#open + 1] = slot end
    end
    readSlots(open)
    readFields(KEY_POSITIONS, open, positions)
  end
  for i, slot in ipairs(slots) do
    local at = starts[i]
    if goesAlong(slot) then
      list[#list + 1] = slot
      list[#list + 1] = string.sub(text, at + 8, at + ENTRY - 1)
    elseif rows[i] and string.byte(rows[i]) ~= CLOSED then
      list.others[#list.others + 1] = at
    end
  end
  listsOf[name] = list
  return list
end

-- Returns the ref after which a slot that is behind will receive all events later. If there is none, this is false.
local function waitedFrom(list)
  if list.from ~= nil then return list.from end
  local slots = {}
  for i, at in ipairs(list.others) do slots[i] = string.sub(list.text, at, at + 7) end
  readFields(KEY_POSITIONS, slots, positions)
  list.from = false
  for i, at in ipairs(list.others) do
    local since, position = string.sub(list.text, at + 8, at + ENTRY - 1), positions[slots[i]]
    if position then
      local from = position > since and position or since
      if not list.from or from < list.from then list.from = from end
    end
  end
  return list.from
end

local sinceOf = {}
local function isSince(slot, ref)
  local since = sinceOf[slot]
  if not since then
    since = string.sub(redis.call('HGET', KEY_SUBS, slot), 27, 41)
    sinceOf[slot] = since
  end
  return since < ref
end

-- Returns the slots that should receive an event, starting with the `from` field of its key. It also returns the number
-- of slots that don't receive it because they have started later. If there are too many slots, it returns the field
-- from which to continue.
local function targetsOf(groupKey, ref, from)
  local slots, skipped = {}, 0
  if groupKey == '' then return slots, 0 end
  for number = from, readList(groupKey, 1).groups do
    if not cohort and #slots + GROUP > REFERENCES then return slots, skipped, number end
    local list = readList(groupKey, number)
    for k = 1, #list, 2 do
      if list[k + 1] < ref then
        if isSince(list[k], ref) then slots[#slots + 1] = list[k] else skipped = skipped + 1 end
      end
    end
  end
  return slots, skipped
end

-- Returns true if a slot that is behind will receive an event later.
local function isWaitedFor(groupKey, ref)
  for number = 1, readList(groupKey, 1).groups do
    local from = waitedFrom(readList(groupKey, number))
    if from and from < ref then return true end
  end
  return false
end

-- Counts the slots that were moved but have not received an event that was passed. It also counts (only once) if there
-- was no slot that received it.
local function countPassed(groupKey, ref, routed, skipped)
  if groupKey == '' then
    if not cohort then missed.keyless, missed.unrouted = missed.keyless + 1, missed.unrouted + 1 end
    return
  end
  local all = cohort and #members or tonumber(meta.live or '0')
  missed.notActivated = missed.notActivated + math.max(0, all - routed - skipped)
  if not cohort and routed == 0 and not isWaitedFor(groupKey, ref) then missed.unrouted = missed.unrouted + 1 end
end

local laneRead = {}
local function route(slot, groupKey, ref)
  local groupLane = slot .. groupKey
  local entry = groupLane .. '\0' .. ref
  listRef(slot, ref)
  local lane = orderOf[slot] == 117 and entry or groupLane
  if not laneRead[lane] then
    laneRead[lane] = true
    claimOf[lane], stateOf[lane] = redis.call('HGET', KEY_CLAIMS, lane), redis.call('HGET', KEY_LANES, lane)
  end
  if not joinsLane(slot, lane, entry) then letWait(slot, lane, entry) end
end

if not hold and not chooseCohort() then
  local more = countSkips()
  local why = countedReasons(meta.why)
  if why then redis.call('HSET', KEY_META, 'why', why) end
  keepCohort('')
  return { 'OK', 0, 0, more, '' }
end
position = position or meta.pos or NO_REF
local used, granted = tonumber(meta.used or '0'), tonumber(meta.granted or '') or math.huge
local passed, references, spent, lateBytes, slice, isShort = 0, 0, 0, 0, nil, false
local first, sliced = string.match(meta.slice or '', '^(%d+) (%d+)$')
first, sliced = tonumber(first or '1'), tonumber(sliced or '0')
-- Routes the events of a page. Returns whether there are no more events, and whether this call should not route more.
local function routePage()
  local entries = redis.call('XRANGE', KEY_LOG, '(' .. idOf(position), '+', 'COUNT', PAGE)
  for _, each in ipairs(entries) do
    local fields, ref = each[2], refOf(each[1])
    local groupKey = fields[2]
    local slots, skipped, following = targetsOf(groupKey, ref, first)
    local tokens = tokensOf(tonumber(fields[6])) * #slots
    if references > 0 and references + #slots > ENOUGH then return false, true end
    if used + spent + tokens > granted then
      isShort = true
      -- If a slot already has the event, it must not receive it again.
      if first > 1 then slice = string.format('%d %d', first, sliced) end
      meta.wanted = string.format('%.0f', tokens)
      return false, true
    end
    if #slots > 0 then
      local late = {}
      for _, slot in ipairs(slots) do
        route(slot, groupKey, ref)
        late[#late + 1] = packSlot(slot)
      end
      local before = redis.call('HGET', KEY_LATE, ref)
      redis.call('HSET', KEY_LATE, ref, (before or '') .. table.concat(late))
      if not before then lateBytes = lateBytes + LATE_COST end
      lateBytes = lateBytes + (REFERENCE_COST + OPEN_COST) * #slots
      references, spent = references + #slots, spent + tokens
    end
    missed.skipped = missed.skipped + skipped
    if following then
      slice = string.format('%d %d', following, sliced + #slots + skipped)
      return false, true
    end
    countPassed(groupKey, ref, sliced + #slots, skipped)
    first, sliced = 1, 0
    position = ref
    passed = passed + 1
  end
  return #entries < PAGE, references >= ENOUGH
end

local isDone, isFull
repeat isDone, isFull = routePage() until isDone or isFull or passed >= ENTRIES
writeLanes()
writeCounts()
writeLists()

local set, gone = {}, {}
local function put(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end
if spent > 0 then
  put('used', string.format('%.0f', used + spent))
  put('bytes', string.format('%.0f', tonumber(meta.bytes or '0') + lateBytes))
  put('in', counted(meta['in'], now, 0, 0, spent))
end
local why = countedReasons(meta.why)
if why then put('why', why) end
if missed.unrouted > 0 then put('out', counted(meta.out, now, 0, 0, missed.unrouted)) end
if isShort then put('need', meta.wanted) elseif meta.need then gone[#gone + 1] = 'need' end
if cohort then
  -- Note the time of the last move. If many slots are behind, it shows whether any of them are still being moved.
  put('moved', string.format('%.0f', now))
  local moved = {}
  for _, slot in ipairs(members) do
    moved[#moved + 1] = slot
    moved[#moved + 1] = position
  end
  if isDone then
    redis.call('HDEL', KEY_POSITIONS, unpack(members))
    put('live', string.format('%.0f', tonumber(meta.live or '0') + #members))
  else
    redis.call('HSET', KEY_POSITIONS, unpack(moved))
  end
  keepCohort(isDone and '' or table.concat(members))
  -- If the part was not held back before, it is held back from this position.
  if isShort then
    hold = 'tokens'
    put('hold', hold)
    put('pos', tail)
  end
elseif isDone then
  hold = ''
  for _, field in ipairs({ 'hold', 'pos', 'slice' }) do gone[#gone + 1] = field end
else
  if isShort then hold = 'tokens' elseif hold == 'tokens' then hold = 'behind' end
  put('hold', hold)
  put('pos', position)
  if slice then put('slice', slice) else gone[#gone + 1] = 'slice' end
end
if #set > 0 then redis.call('HSET', KEY_META, unpack(set)) end
if #gone > 0 then redis.call('HDEL', KEY_META, unpack(gone)) end
if waiting or #behind > 0 then
  local head = pushHead('-', 0, 0, waiting and 1 or 0, #behind, meta.version or '0')
  redis.call('SPUBLISH', KEY_CHANNEL, head .. table.concat(behind))
end
local isBehind = not isDone or others or (not cohort and redis.call('EXISTS', KEY_POSITIONS) == 1)
local more = not isShort and (isBehind or redis.call('EXISTS', KEY_SKIPS) == 1)
return { 'OK', passed, references, more and 1 or 0, hold or '' }
