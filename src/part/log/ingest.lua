#!lua
-- Stores up to 64 events in a part. An event with an id from its producer is only stored once. In the same step, each
-- event is routed to all live slots for which its group key is active. If a lane is idle, it is claimed for the
-- dispatcher that has the most room, and is pushed to it.
--@keys meta log body keys subs positions claims lanes pending waiting turns retries counts ready channel lists reasons ids*
--@args gen cfgv hour ...
-- More: (id, group key, metadata, body, rest)*. rest: the end of the body that is stored in the log. The id is '', 16
-- bytes of the hash of a producer's id, or the ref of a Sluice id.
-- Returns {OK, now, lines, references, inactive, bytes, payer or '', eventsPerSecond or ''}, or one word: GONE (the
--   part is missing or has another generation), STALE (another cfgv), CLOSED (the part does not accept events), or
--   CLOCK, now, and the last hour with ids (a producer's id is given, and `hour` has no key or is off by over 1).
-- lines: O ref (stored), D ref (duplicate), R (a Sluice id without an event), F (the quota is used up), L cost (the
--   part has no space left in the limit of its account). If there are fewer lines than events, the others would exceed
--   512 references and belong in the next call. references: number of references written. inactive: number of events
--   whose group key is active for no slot. bytes: stored bytes of the part after this call.
-- If Redis is out of memory, the whole call is rejected before its first write (there is no allow-oom).
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/message.lua
--@include ../lanes/ready.lua
--@include push.lua
--@include ../lanes/routing.lua
--@include ../gate/activations.lua
--@include ../../redis/scripts/lib/traffic.lua
--@include sender-ids.lua
--@include cost.lua
--@include ../stored/open-cost.lua
--@include ../lists/packing.lua
--@include ../lists/lists.lua
--@include ../reasons/reasons.lua
local REFERENCES = 512
local FIELDS = {
  'ready', 'gen', 'cfgv', 'state', 'tail', 'bytes', 'maxBytes', 'used', 'granted', 'hold', 'version', 'in', 'out', 'ids',
  'live', 'why', 'notified', 'storedMax', 'space', 'payer', 'eventsPerSecond',
}
local meta = {}
for i, value in ipairs(redis.call('HMGET', KEY_META, unpack(FIELDS))) do meta[FIELDS[i]] = value end
if meta.ready ~= '1' or meta.gen ~= ARG_GEN then return { 'GONE' } end
if meta.cfgv ~= ARG_CFGV then return { 'STALE' } end
if meta.state ~= 'open' then return { 'CLOSED' } end
-- A batch ends before an event that would exceed the limit. If a single event exceeds it, the event is stored and held
-- back.
local count = (#ARGV - FIRST + 1) / 5
local groupKeys, numberOf, hashes, refs = {}, {}, {}, {}
for i = FIRST, #ARGV, 5 do
  local hash, groupKey = ARGV[i], ARGV[i + 1]
  if isOwn(hash) then
    refs[#refs + 1] = hash
  elseif hash ~= '' then
    hashes[#hashes + 1] = hash
  end
  if groupKey ~= '' and not numberOf[groupKey] then
    groupKeys[#groupKeys + 1] = groupKey
    numberOf[groupKey] = #groupKeys
  end
end
ARG_HOUR = tonumber(ARG_HOUR)
if #hashes > 0 and math.abs(math.floor(now / HOUR_MS) - ARG_HOUR) > 1 then return { 'CLOCK', now } end
meta.ids = readHours(meta.ids)
if #hashes > 0 and meta.ids then return { 'CLOCK', now, meta.ids } end
local hold, position = meta.hold, nil
local slotsOf, isWide = {}, {}
local tail = tailOf(meta.tail)

local function readActivations()
  local fields = redis.call('HMGET', KEY_KEYS, '', unpack(groupKeys))
  if not fields[1] then return false end
  local references = 0
  for n, groupKey in ipairs(groupKeys) do
    local first, slots, found = fields[n + 1] or '', {}, 0
    local groups = groupsOf(first)
    if (groups - 1) * GROUP > REFERENCES then
      isWide[groupKey] = true
    else
      for number = 1, groups do
        local list = number == 1 and first or redis.call('HGET', KEY_KEYS, nameOf(groupKey, number)) or ''
        for at = 1, #list - SUFFIX, ENTRY do found, slots[found + 1] = found + 1, string.sub(list, at, at + 7) end
      end
      isWide[groupKey] = found > REFERENCES
      slotsOf[groupKey] = slots
    end
  end
  for i = 0, count - 1 do
    local slots = slotsOf[ARGV[FIRST + 5 * i + 1]]
    references = references + (slots and #slots or 0)
    if references > REFERENCES and i > 0 then
      count = i
      break
    end
  end
  return true
end

-- Live slots of each group key with their lanes: (slot, lane)*. If a slot is unordered, its lane is not read. `packed`:
-- the slots as the log lists them. If there is a slot that is behind or paused and will get the event later,
-- `isWaitedFor` is true.
local NOBODY = { packed = '' }
local targetsOf = {}
local function openLanes()
  local all, seen, lanes = {}, {}, {}
  for i = 0, count - 1 do
    local groupKey = ARGV[FIRST + 5 * i + 1]
    if slotsOf[groupKey] and not isWide[groupKey] and not seen[groupKey] then
      seen[groupKey] = true
      for _, slot in ipairs(slotsOf[groupKey]) do all[#all + 1] = slot end
    end
  end
  if #all == 0 then return end
  readSlots(all)
  local behind = {}
  if redis.call('EXISTS', KEY_POSITIONS) == 1 then readFields(KEY_POSITIONS, all, behind) end
  for groupKey in pairs(seen) do
    local targets, packed, n = {}, {}, 0
    for _, slot in ipairs(slotsOf[groupKey]) do
      if routeOf[slot] == 111 and not behind[slot] then
        local lane = slot .. groupKey
        targets[n + 1], targets[n + 2] = slot, lane
        n = n + 2
        packed[n / 2] = packedSlots[slot] or packSlot(slot)
        if orderOf[slot] ~= 117 then lanes[#lanes + 1] = lane end
      elseif routeOf[slot] == 111 or routeOf[slot] == 112 then
        targets.isWaitedFor = true
      end
    end
    targets.packed = table.concat(packed)
    targetsOf[groupKey] = targets
  end
  readFields(KEY_CLAIMS, lanes, claimOf)
  readFields(KEY_LANES, lanes, stateOf)
end

if not hold then
  if not readActivations() then
    hold, position = 'gates', tail
  else
    openLanes()
  end
end

-- A dispatcher that has crashed returns no room, so it soon has less than the active ones.
local dispatcher, to, room = nil, nil, 0
if not hold and next(targetsOf) then
  local all = redis.call('HGETALL', KEY_READY)
  for i = 1, #all, 2 do
    local r = readReady(all[i + 1])
    if r.untilMs > now and r.room > 0 and r.limit - r.held > room then
      dispatcher, to, room = all[i], r, r.limit - r.held
    end
  end
end

local known = knownIds(hashes)
noteOwn(known, refs)
local tailMs, sequence = msOf(tail), tonumber(string.sub(tail, 12), 16)
local lines, newIds, events, bodies, bodyBytes = {}, {}, {}, {}, 0
local bytes, maxBytes, stored, storedBytes = tonumber(meta.bytes or '0'), tonumber(meta.maxBytes or '0'), 0, 0
local used, granted = tonumber(meta.used or '0'), tonumber(meta.granted or '') or math.huge
local spent, pushed, pushedBytes = 0, 0, 0
-- There can be at most 200 local variables in a script.
meta.references, meta.inactive = 0, 0
-- The number of bytes that the part is allowed to store, according to the limit of its account
-- (space/account-space.lua).
meta.space = meta.storedMax and tonumber(meta.space or '0') or math.huge
-- Returns the ref of the next event, and its id in the log.
local function nextRef()
  if now > tailMs then
    tailMs, sequence = now, 0
  elseif sequence < LAST_SEQUENCE then
    sequence = sequence + 1
  else
    tailMs, sequence = tailMs + 1, 0
  end
  return string.format('%011x%04x', tailMs, sequence), string.format('%d-%d', tailMs, sequence)
end

-- Returns true if it is possible to claim an idle lane now. This is the case if there are no lanes waiting for its
-- slot, and the slot does not have a limit per second.
local function mayPush(slot)
  return pushed < room and pushedBytes < to.room and waitingOf[slot] == NONE and flightOf[slot] < limitOf[slot]
    and sendOf[slot] == 111 and paceOf[slot] == 0
end

-- Appends an event to a lane. `suffix`: the end of its entry. `claim`: its claim. If this has claimed the lane, it
-- returns the text of the claim (lanes/message.lua).
local function append(slot, groupLane, ref, suffix, claim)
  local unordered = orderOf[slot] == 117
  local lane = unordered and groupLane .. suffix or groupLane
  listRef(slot, ref)
  if not claimOf[lane] and not stateOf[lane] and mayPush(slot) then
    routedOf[slot], flightOf[slot] = routedOf[slot] + 1, flightOf[slot] + 1
    claimOf[lane], changedClaims[lane], changedCounts[slot] = claim, true, true
    pushed, pushedBytes = pushed + 1, pushedBytes + 10
    return unordered and slot .. '~' or slot
  end
  local entry = groupLane .. suffix
  if not joinsLane(slot, lane, entry) then letWait(slot, lane, entry) end
end

for i = FIRST, FIRST + 5 * count - 1, 5 do
  local hash, groupKey, eventMeta, body, rest = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local size = #body + #rest
  local targets = not hold and targetsOf[groupKey] or NOBODY
  local cost = costOf(#body, #rest + #eventMeta + #groupKey, #targets / 2)
  -- These bytes are given back before the event expires.
  local extraCost = OPEN_COST * #targets / 2 + (hash ~= '' and ID_COST or 0)
  local tokens = tokensOf(size) * #targets / 2
  if hash ~= '' and known[hash] then
    lines[#lines + 1] = 'D' .. known[hash]
  elseif isOwn(hash) then
    lines[#lines + 1] = 'R'
  elseif bytes + storedBytes + cost + extraCost > maxBytes then
    lines[#lines + 1] = 'F'
  elseif bytes + storedBytes + cost + extraCost > meta.space then
    lines[#lines + 1] = 'L' .. string.format('%d', cost + extraCost)
  else
    if not hold and (isWide[groupKey] or used + spent + tokens > granted) then
      hold = isWide[groupKey] and 'wide' or 'tokens'
      position = stored > 0 and string.format('%011x%04x', tailMs, sequence) or tail
      cost, extraCost = cost - REFERENCE_COST * #targets / 2, extraCost - OPEN_COST * #targets / 2
      targets, tokens = NOBODY, 0
    end
    local ref, id = nextRef()
    -- Numbers as text: Redis converts numbers with 17 digits, which takes five times as long.
    local sizeText, costText = string.format('%d', size), string.format('%d', cost)
    redis.call('XADD', KEY_LOG, id, 'g', groupKey, 'm', eventMeta, 's', sizeText, 'c', costText, 'r', targets.packed, 'b', rest)
    bodies[#bodies + 1] = ref
    bodies[#bodies + 1] = body
    lines[#lines + 1] = 'O' .. ref
    stored, storedBytes, bodyBytes = stored + 1, storedBytes + cost + extraCost, bodyBytes + size
    spent = spent + tokens
    if hash ~= '' then
      known[hash] = ref
      newIds[#newIds + 1] = hash
      newIds[#newIds + 1] = ref
    end
    local claims, suffix, claim = {}, '\0' .. ref, 'c' .. ref .. (dispatcher or '')
    for k = 1, #targets, 2 do
      local text = append(targets[k], targets[k + 1], ref, suffix, claim)
      if text then claims[#claims + 1] = text end
    end
    if #claims > 0 then
      addEvent(events, ref, groupKey, eventMeta, body, rest, size, table.concat(claims, ','))
      pushedBytes = pushedBytes + #groupKey + #eventMeta + (size > PUSHED_BODY and 0 or size) + 40
    end
    meta.references = meta.references + #targets / 2
    if not hold then
      if #targets == 0 and not targets.isWaitedFor then missed.unrouted = missed.unrouted + 1 end
      if groupKey == '' then
        missed.keyless = missed.keyless + 1
      else
        missed.notActivated = missed.notActivated + math.max(0, tonumber(meta.live or '0') - #targets / 2)
      end
      if slotsOf[groupKey] and #slotsOf[groupKey] == 0 then meta.inactive = meta.inactive + 1 end
    end
  end
end

-- If a dispatcher receives this message, it will look for work.
waiting = waiting or hold ~= meta.hold
-- The process that folds the counts and removes expired events also needs a message about events without a claim, at
-- least every 4 s. This must be shorter than `foldMs` (parts/upkeep.ts). `notified` is about the time of the last one.
local mustNotify = stored > 0 and math.abs(now - tonumber(meta.notified or '0')) > 4000
if stored > 0 then
  redis.call('HSET', KEY_BODY, unpack(bodies))
  writeLanes()
  writeCounts()
  writeLists()
  local set = {
    'tail', string.format('%011x%04x', tailMs, sequence),
    'bytes', string.format('%d', bytes + storedBytes),
    'in', counted(meta['in'], now, stored, bodyBytes, spent),
  }
  local function put(field, value)
    set[#set + 1] = field
    set[#set + 1] = value
  end
  if spent > 0 then put('used', string.format('%d', used + spent)) end
  if missed.unrouted > 0 then put('out', counted(meta.out, now, 0, 0, missed.unrouted)) end
  local why = countedReasons(meta.why)
  if why then put('why', why) end
  if hold ~= meta.hold then
    put('hold', hold)
    put('pos', position)
  end
  if mustNotify then put('notified', string.format('%d', now)) end
  if #newIds > 0 then put('ids', noteIds(newIds, tailMs)) end
  redis.call('HSET', KEY_META, unpack(set))
end
if pushed > 0 or #behind > 0 or waiting or mustNotify then
  pushEvents(events, {
    dispatcher = pushed > 0 and dispatcher, to = to, pushed = pushed, bytes = pushedBytes, behind = behind,
    isWaiting = waiting, version = meta.version,
  })
end
return {
  'OK', now, table.concat(lines, '\n'), meta.references, meta.inactive, bytes + storedBytes, meta.payer or '',
  meta.eventsPerSecond or '',
}
