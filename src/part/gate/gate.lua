#!lua flags=allow-oom
-- Applies the changes of the controller to a part. Either all of them are applied, or none. The changes apply to all
-- later routing and claims.
--@keys meta log keys subs endpoints positions claims lanes pending waiting turns retries tries off counts dropped former skips skipped channel
--@args fence gen ...
-- More: (operation, a, b, c)*, where each is one of
--   begin               begins a generation, and removes the counts of the one before. Only as the first operation
--   meta   field value  sets a field that the controller owns; '' removes it
--   marker              marks the activations as complete, so that events are routed
--   unmark              marks them as incomplete. Events are held back until they are complete
--   clear  field        removes a damaged field of P:keys
--   row    slot row how sets a row of P:subs. `how`, for a row that opens: '' continues from its position, or else from
--                       now on; behind starts at the tail, and opens once it has caught up; skip continues from now on
--   endpoint slot text  sets a sealed endpoint; '' removes it
--   drop   slot how inbox  removes the row and the endpoint. The sweep removes the events in its lanes after the
--                       retention, or at once if `how` is delete. inbox: '' if unknown
--   on     slot key since  activates a group key, unless the slot has no row. since: '' for the ref of the tail
--   off    slot key    deactivates a group key
--   unpark slot key    continues to unpark the lanes of an activated group key
-- Returns {OK, number of changes, ref of the tail, 1 if the call must be repeated to unpark more}, or one word: FENCED
--         (a newer controller leads), GONE (another generation).
-- If a slot is paused, its position is the tail, or the part position if the part is held back. If a slot is
-- behind, it keeps its position.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/tries.lua
--@include ../lanes/message.lua
--@include activations.lua
--@include activation-lists.lua
--@include ../tokens/ledger.lua
local PROGRESS = {
  'tail', 'bytes', 'used', 'granted', 'hold', 'pos', 'slice', 'moved', 'ids', 'version', 'ready', 'cut', 'recs', 'tidied',
  'live', 'why', 'notified', 'back', 'space', 'spaceSeq', 'cohort',
}
local MOST_UNPARKED, LONGEST_MS = 1000, 2592000000
local OPEN, PAUSED, CLOSED = 111, 112, 99
local MARKER = string.rep('1', 65)
local meta = redis.call('HMGET', KEY_META, 'fence', 'gen', 'tail', 'hold', 'pos', 'version', 'slice', 'live')
local fence = tonumber(meta[1] or '0')
if fence > tonumber(ARG_FENCE) then return { 'FENCED' } end
if meta[2] ~= ARG_GEN and ARGV[FIRST] ~= 'begin' then return { 'GONE' } end
if fence < tonumber(ARG_FENCE) then redis.call('HSET', KEY_META, 'fence', ARG_FENCE) end
local changes, more, woken, rowsChanged = 0, 0, false, false
if meta[2] ~= ARG_GEN then
  endLedger()
  redis.call('HDEL', KEY_META, unpack(PROGRESS))
  if redis.call('HEXISTS', KEY_META, 'payer') == 1 then beginLedger() end
  redis.call('HSET', KEY_META, 'gen', ARG_GEN)
  -- Keep the key, which expires if the part has just been removed.
  redis.call('PERSIST', KEY_META)
  -- A version must never be used twice, because dispatchers use the version to cache rows.
  redis.call('HSET', KEY_META, 'version', string.format('%.0f', now))
  meta = { ARG_FENCE, ARG_GEN, [6] = string.format('%.0f', now) }
  changes = 1
end
local tail, hold = tailOf(meta[3]), meta[4]
-- The ref up to which the part has been routed.
local routed = hold and meta[5] or tail
-- If an event is routed in slices, this contains the number of the next slice, and how many live slots already have the
-- event.
local slice, sliced = string.match(hold and meta[7] or '', '^(%d+) (%d+)$')
slice, sliced = tonumber(slice), tonumber(sliced)

local function set(key, field, value)
  if redis.call('HGET', key, field) == (value ~= '' and value) then return false end
  if value == '' then redis.call('HDEL', key, field) else redis.call('HSET', key, field, value) end
  changes = changes + 1
  return true
end

-- If there is a new payer, the ledger ends. After that, its total is owed. Nothing else can be stored until the new
-- account has granted space.
local function setPayer(field, value)
  if redis.call('HGET', KEY_META, field) == (value ~= '' and value) then return end
  if field == 'payer' then
    endLedger()
    redis.call('HDEL', KEY_META, 'space')
  end
  set(KEY_META, field, value)
  if field == 'payer' then beginLedger() else boundLedger() end
  if hold then woken = true end
end

local function wakeSlot(slot)
  local count = redis.call('HGET', KEY_COUNTS, slot)
  if not count then return end
  local before, waiting, ended = string.match(count, '^(%d+ %d+ )(%d)(.*)$')
  if waiting == '0' then return end
  redis.call('HSET', KEY_COUNTS, slot, before .. '1' .. ended)
  giveTurn(slot)
  woken = true
end

local function stand(slot, ref)
  redis.call('HSET', KEY_POSITIONS, slot, ref)
end

-- Makes a slot continue from now on. It starts at the tail, as for all live slots, unless the part is being held back.
local function begin(slot)
  if hold then stand(slot, tail) else redis.call('HDEL', KEY_POSITIONS, slot) end
end

-- The number of live slots (reasons/reasons.lua). It is only read if there are changes to rows. Slots that are paused
-- also have a position.
local live
local function countLive()
  if redis.call('EXISTS', KEY_SUBS) == 0 then return 0 end
  local count = -redis.call('HLEN', KEY_POSITIONS)
  for _, row in ipairs(redis.call('HVALS', KEY_SUBS)) do
    if string.byte(row) ~= CLOSED then count = count + 1 end
  end
  return math.max(0, count)
end
local function readLive()
  if not live then live = redis.call('EXISTS', KEY_SUBS) == 1 and tonumber(meta[8] or '') or countLive() end
end

-- Called when a slot is no longer live. Returns the ref up to which the slot has been routed. If there is an event that
-- is still being routed in slices, the slot may or may not have it.
local function leaveLive(slot)
  live = math.max(0, live - 1)
  local event = slice and redis.call('XRANGE', KEY_LOG, '(' .. idOf(routed), '+', 'COUNT', 1)[1]
  if not event then return routed end
  local ref = refOf(event[1])
  local key = readKey(event[2][2])
  local number, at = findIn(key, slot)
  local has = number and number < slice and string.sub(key.lists[number], at + 8, at + ENTRY - 1) < ref
  if not has then return routed end
  sliced = math.max(0, sliced - 1)
  redis.call('HSET', KEY_META, 'slice', string.format('%.0f %.0f', slice, sliced))
  return ref
end

local function setRow(slot, row, how)
  readLive()
  local before = redis.call('HGET', KEY_SUBS, slot)
  local was, sent = string.byte(before or 'ch', 1, 2)
  local route, send = string.byte(row, 1, 2)
  local position = redis.call('HGET', KEY_POSITIONS, slot)
  if route == CLOSED then
    if position then redis.call('HDEL', KEY_POSITIONS, slot) elseif was == OPEN then leaveLive(slot) end
  elseif was == CLOSED then
    if how == 'behind' or route == PAUSED then stand(slot, tail) else begin(slot) end
  elseif was == OPEN and route == PAUSED then
    if not position then stand(slot, leaveLive(slot)) end
  elseif was == PAUSED and how == 'skip' then
    -- The events that it has not received will be counted later.
    if position and position < tail then redis.call('HSET', KEY_SKIPS, slot .. position, tail) end
    local last = tonumber(redis.call('HGET', KEY_SKIPPED, slot) or '0')
    redis.call('HSET', KEY_SKIPPED, slot, string.format('%.0f', math.max(now, last + 1)))
    if route == OPEN then begin(slot) else stand(slot, tail) end
  elseif was == PAUSED and route == OPEN and not hold and position == tail then
    redis.call('HDEL', KEY_POSITIONS, slot)
  end
  if not set(KEY_SUBS, slot, row) then return end
  rowsChanged = true
  if route == OPEN and redis.call('HEXISTS', KEY_POSITIONS, slot) == 1 then
    woken = true
    -- End the cohort, because this slot may be closer to the tail than those that are being moved.
    local cohort = redis.call('HGET', KEY_META, 'cohort')
    redis.call('HDEL', KEY_META, 'cohort')
    if cohort == '-' then redis.call('HSET', KEY_META, 'cohort', slot .. '-') end
  elseif route == OPEN and was ~= OPEN then
    live = live + 1
  end
  if send == 111 then wakeSlot(slot) end
end

-- Makes lanes that are parked wait again. A single call can process up to 1,000 events.
local function unpark(slot, groupKey)
  local key = slot .. groupKey
  local mark = redis.call('HGET', KEY_OFF, key)
  if not mark then return end
  local from = mark == '1' and '[' .. key .. '\0' or '(' .. string.sub(mark, 2)
  local seen, asked = {}, {}
  local members = redis.call('ZRANGEBYLEX', KEY_PENDING, from, '(' .. key .. '\2', 'LIMIT', 0, MOST_UNPARKED)
  if #members == MOST_UNPARKED then
    redis.call('HSET', KEY_OFF, key, '2' .. members[MOST_UNPARKED])
    more = 1
  else
    redis.call('HDEL', KEY_OFF, key)
  end
  for _, entry in ipairs(members) do
    local lane = string.sub(entry, 1, -17)
    if not seen[lane] then asked[#asked + 1] = lane end
    seen[lane] = true
    asked[#asked + 1] = entry
  end
  readFields(KEY_LANES, asked, stateOf)
  for _, lane in ipairs(asked) do
    if stateOf[lane] == 'p' then
      local entry = headOf(lane)
      if entry then
        -- The event that was first when the lane was parked may have ended since.
        local attempts, lapses, due = readTries(triesOf(entry))
        if due > now then retryLane(lane, due) else waitLane(lane, classOf(attempts, lapses), now) end
      else
        setState(lane, false)
      end
    end
  end
  local count = redis.call('HGET', KEY_COUNTS, slot)
  if count then
    local before, waiting, ended = string.match(count, '^(%d+ %d+ )(%d)(.*)$')
    if waiting ~= '2' then redis.call('HSET', KEY_COUNTS, slot, before .. '1' .. ended) end
    if waiting ~= '2' then giveTurn(slot) end
    woken = true
  end
end

-- If not all of the lanes have been unparked by an earlier call, this unparks more of them.
local function continueUnparking(slot, groupKey)
  if string.byte(redis.call('HGET', KEY_OFF, slot .. groupKey) or '') == 50 then unpark(slot, groupKey) end
end

local function activate(slot, groupKey, since)
  -- The subscription has been dropped in the meantime. Its group keys are closed after that.
  if redis.call('HEXISTS', KEY_SUBS, slot) == 0 then return end
  local key = readKey(groupKey)
  local lists = key.lists
  if findIn(key, slot) then return continueUnparking(slot, groupKey) end
  local number = 1
  while lists[number] and #lists[number] >= ENTRY * GROUP do number = number + 1 end
  lists[number] = (lists[number] or '') .. slot .. (since ~= '' and since or tail)
  writeList(groupKey, key, number, slot, true)
  changes = changes + 1
  unpark(slot, groupKey)
end

local function deactivate(slot, groupKey)
  local read = readKey(groupKey)
  local number, at = findIn(read, slot)
  if not number then return end
  local list = read.lists[number]
  read.lists[number] = string.sub(list, 1, at - 1) .. string.sub(list, at + ENTRY)
  writeList(groupKey, read, number, slot, false)
  changes = changes + 1
  local key = slot .. groupKey
  -- A claim has to check if there is a mark, but only if there are events waiting, or if there is an attempt in
  -- progress that could be followed by others.
  local flight = string.match(redis.call('HGET', KEY_COUNTS, slot) or '0', '^%d+')
  local open = redis.call('ZRANGEBYLEX', KEY_PENDING, '[' .. key .. '\0', '(' .. key .. '\2', 'LIMIT', 0, 1)[1]
  if open or flight ~= '0' then redis.call('HSET', KEY_OFF, key, '1') end
end

for i = FIRST, #ARGV, 4 do
  local operation, a, b, c = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  if operation == 'meta' and (a == 'payer' or a == 'plan') then setPayer(a, b)
  -- Nothing else can be stored until the account has granted space within the new limit.
  elseif operation == 'meta' and a == 'storedMax' then
    if set(KEY_META, a, b) then redis.call('HDEL', KEY_META, 'space') end
  -- Wakes up all dispatchers and ingress processes for which the part (or its control data) was missing.
  elseif operation == 'meta' then
    local isSet = set(KEY_META, a, b)
    woken = isSet and a == 'ready' or woken
    -- The process that removes expired events notices the new version.
    rowsChanged = isSet and a == 'retentionMs' or rowsChanged
  elseif operation == 'marker' then
    woken = set(KEY_KEYS, '', MARKER) or woken
    -- Some of the data was lost or is damaged.
    live = countLive()
  elseif operation == 'unmark' then set(KEY_KEYS, '', '')
  elseif operation == 'clear' then
    set(KEY_KEYS, a, '')
    keysRead[string.match(a, '^[^%z]*')] = nil
  elseif operation == 'row' then setRow(a, b, c)
  elseif operation == 'endpoint' then rowsChanged = set(KEY_ENDPOINTS, a, b) or rowsChanged
  elseif operation == 'drop' then
    readLive()
    local row, position = redis.call('HGET', KEY_SUBS, a), redis.call('HDEL', KEY_POSITIONS, a)
    if row and string.byte(row) == OPEN and position == 0 then leaveLive(a) end
    set(KEY_SUBS, a, '')
    set(KEY_ENDPOINTS, a, '')
    redis.call('HDEL', KEY_SKIPPED, a)
    local retentionMs = tonumber(redis.call('HGET', KEY_META, 'retentionMs') or LONGEST_MS)
    redis.call('ZADD', KEY_DROPPED, 'NX', string.format('%.0f', now + (b == 'delete' and 0 or retentionMs)), a)
    -- If nothing was routed to it, there are no events to look up.
    if c ~= '' and redis.call('HEXISTS', KEY_COUNTS, a) == 1 then
      redis.call('HSETNX', KEY_FORMER, a, string.format('%013.0f', now + retentionMs) .. c)
    end
    rowsChanged = true
  elseif operation == 'on' then activate(a, b, c)
  elseif operation == 'off' then deactivate(a, b)
  elseif operation == 'unpark' then continueUnparking(a, b)
  end
  -- The next operation for the same key needs to read what was written by this one.
  writeLanes()
end
if live and live ~= tonumber(meta[8] or '') then redis.call('HSET', KEY_META, 'live', string.format('%.0f', live)) end
local version = meta[6] or '0'
if rowsChanged then version = redis.call('HINCRBY', KEY_META, 'version', 1) end
if woken or rowsChanged then
  redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, woken and 1 or 0, 0, version))
end
return { 'OK', changes, tail, more }
