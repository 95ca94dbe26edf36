#!lua flags=allow-oom
-- Removes all events that are older than the retention, starting with the oldest. Each call processes a single slice.
-- If there are open deliveries and replays for these events, they end as expired. If a delivery has not been routed
-- yet, it is only counted. This can be called by any dispatcher, because the progress is stored in P:meta.
--@keys meta log body subs positions late claims lanes pending waiting turns retries tries counts final lists replays channel reasons records*
--@args gen bucket
-- bucket: number of the bucket in the list of records.
-- Returns {OK, number of events removed, deliveries expired, deliveries expired before they were routed (subscriptions
--         times events), 1 if there is more to do}; {BUCKET, number} if nothing was done and that bucket has to be
--         listed; or GONE.
-- Field `cut` of P:meta, while a slice is being removed: the ref of its last event; the cursor in P:pos, or - if no
-- position is before that event, so none of the slice will be routed; the ref of the event whose references end next;
-- and how many of these have already ended. If all of them have ended, the cursor is =, and the last two are the event
-- whose records are removed next, and how far this has come (records/delivered.lua).
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/tries.lua
--@include ../lanes/message.lua
--@include ../stored/add-bytes.lua
--@include ../stored/open-cost.lua
--@include ../records/records.lua
--@include ../records/delivered.lua
--@include ../log/cost.lua
--@include ../../redis/scripts/lib/traffic.lua
--@include ../lists/packing.lua
--@include ../lists/pruning.lua
--@include ../reasons/reasons.lua
local ENTRIES, PAGE, POSITIONS = 128, 16, 256
local SLICE_REFERENCES, SLICE_BYTES = 5000, 4194304
local LOOKED, MOST_ENDED = 500, 100
-- The number of bytes that are used by the replay ids of a reference.
local MOST_IDS = 8192
local LONGEST_MS, BUCKET_MS = 2592000000, 21600000
local waiting = false
--@include ../owner/ended.lua
--@include ending.lua
--@include unpacking.lua
local FIELDS = { 'gen', 'retentionMs', 'hold', 'pos', 'slice', 'out', 'version', 'cut', 'live', 'why' }
local meta = {}
for i, value in ipairs(redis.call('HMGET', KEY_META, unpack(FIELDS))) do meta[FIELDS[i]] = value end
if meta.gen ~= ARG_GEN then return { 'GONE' } end
local set, gone = {}, {}
local function put(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end

-- Reads events one page at a time. For each event, `visit` is called with the ref and the fields, until it returns
-- false.
local function eachEvent(from, till, visit)
  while true do
    local page = redis.call('XRANGE', KEY_LOG, from, till, 'COUNT', PAGE)
    for _, each in ipairs(page) do
      if not visit(refOf(each[1]), each[2]) then return end
    end
    if #page < PAGE then return end
    from = '(' .. page[PAGE][1]
  end
end

-- Returns the ref of the last event in the next slice. If there are no events that are old enough, it returns nil.
local function chooseSlice(beforeMs)
  local last, events, references, bytes = nil, 0, 0, 0
  eachEvent('-', '+', function(ref, fields)
    if msOf(ref) >= beforeMs or events == ENTRIES then return false end
    local late = redis.call('HSTRLEN', KEY_LATE, ref)
    events, references, bytes = events + 1, references + (#fields[10] + late) / 5, bytes + fields[6]
    if last and (references > SLICE_REFERENCES or bytes > SLICE_BYTES) then return false end
    last = ref
    return true
  end)
  return last
end

--@include positions.lua
-- The references of the slice, starting from where the last call has stopped. Each of them is followed by its replays.
-- A reference consists of an event, the lane of its slot, and the lane of its slot if there is no order.
local slots, refs, numbers, replays, lanes, entries = {}, {}, {}, {}, {}, {}
local nextRef, nextNumber
local function addReference(slot, ref, number, groupKey, replay)
  local i = #slots + 1
  slots[i], refs[i], numbers[i], replays[i] = slot, ref, number, replay or false
  lanes[i] = slot .. groupKey .. (replay and '\1' .. replay or '')
  entries[i] = lanes[i] .. '\0' .. ref
end

-- The fields of P:rp which have been read, the start and the end of the replays for each reference, and the ids that
-- are left for the next call.
local replayed, replayedFrom, replayedTill, replaysLeft = {}, {}, {}, {}
local function addReplays(slot, ref, number, groupKey)
  local field = slot .. ref
  local ids = redis.call('HGET', KEY_REPLAYS, field)
  if not ids then return end
  if #ids > MOST_IDS then
    local some = string.match(string.sub(ids, 1, MOST_IDS), '^.*,')
    replaysLeft[field] = string.sub(ids, #some + 1)
    ids = some
  end
  local k = #replayed + 1
  replayed[k], replayedFrom[k] = field, #slots
  for id in string.gmatch(ids, '[^,]+') do addReference(slot, ref, number, groupKey, id) end
  replayedTill[k] = #slots
end

local function collectReferences(last, ref, number)
  local hasReplays = redis.call('EXISTS', KEY_REPLAYS) == 1
  eachEvent(idOf(ref), idOf(last), function(each, fields)
    local packed = fields[10] .. (redis.call('HGET', KEY_LATE, each) or '')
    for n = each == ref and number or 0, #packed / 5 - 1 do
      if #slots >= LOOKED then
        nextRef, nextNumber = each, n
        return false
      end
      local slot = unpackSlot(string.sub(packed, 5 * n + 1, 5 * n + 5))
      addReference(slot, each, n, fields[2])
      if hasReplays then addReplays(slot, each, n, fields[2]) end
    end
    return true
  end)
end

-- Returns the index in KEYS which is used for the records of an event.
local function recordsOf(ref) return FIRST_RECORDS + math.floor(msOf(ref) / BUCKET_MS) - ARG_BUCKET end

-- Removes all replays that are among the first `ended` references and replays.
local function forgetReplays(ended)
  local forgotten = {}
  for k, field in ipairs(replayed) do
    if replayedTill[k] > ended then break end
    local names = {}
    for i = replayedFrom[k] + 1, replayedTill[k] do names[#names + 1] = recordName(refs[i], replays[i]) end
    forgetDelivered(recordsOf(refs[replayedFrom[k]]), names)
    if replaysLeft[field] then
      redis.call('HSET', KEY_REPLAYS, field, replaysLeft[field])
      nextRef, nextNumber = refs[replayedFrom[k]], numbers[replayedFrom[k]]
      break
    end
    forgotten[#forgotten + 1] = field
  end
  inSlices('HDEL', KEY_REPLAYS, forgotten)
end

-- Removes the events of this slice from the inboxes of the partners.
local function pruneLists(last)
  local keepsFrom = string.format('%s%04x', string.sub(last, 1, 11), tonumber(string.sub(last, 12), 16) + 1)
  local pruned = {}
  for _, slot in ipairs(slots) do
    if not pruned[slot] then pruneList(slot, keepsFrom) end
    pruned[slot] = true
  end
end

local function isClaimOf(lane, ref)
  local claim = claimOf[lane]
  return claim and string.sub(claim, 2, 16) == ref and not isEnded(claim)
end

-- Ends all open references. If there are too many of them, only the first ones are ended. It returns how many
-- references it has processed.
local function endReferences()
  if #slots == 0 then return 0 end
  local waits = redis.call('EXISTS', KEY_PENDING) == 1 and redis.call('ZMSCORE', KEY_PENDING, unpack(entries)) or {}
  if redis.call('EXISTS', KEY_CLAIMS) == 1 then
    readFields(KEY_CLAIMS, lanes, claimOf)
    readFields(KEY_CLAIMS, entries, claimOf)
  end
  local open, openSlots, openLanes, fieldsOf, ended = {}, {}, {}, {}, #slots
  for i, entry in ipairs(entries) do
    local claimed = isClaimOf(lanes[i], refs[i]) and lanes[i] or isClaimOf(entry, refs[i]) and entry
    if waits[i] or claimed then
      if #open == MOST_ENDED then
        nextRef, nextNumber, ended = refs[i], numbers[i], i - 1
        break
      end
      open[#open + 1] = { i, claimed }
      openSlots[#openSlots + 1] = slots[i]
      openLanes[#openLanes + 1] = lanes[i]
      openLanes[#openLanes + 1] = entry
      local at = recordsOf(refs[i])
      fieldsOf[at] = fieldsOf[at] or {}
      table.insert(fieldsOf[at], recordName(refs[i], replays[i]))
    end
  end
  if #open == 0 then return ended end
  readSlots(openSlots)
  readFields(KEY_LANES, openLanes, stateOf)
  readRecords(fieldsOf)
  for _, each in ipairs(open) do
    local i, claimed = each[1], each[2]
    local lane = claimed or (stateOf[entries[i]] and entries[i]) or lanes[i]
    expireEvent(slots[i], lane, entries[i], refs[i], replays[i] or nil, recordsOf(refs[i]), claimed)
  end
  continueLanes()
  return ended
end

-- Removes the records of the deliveries of this slice, starting from where the last call has stopped.
local function forgetRecords(last, ref, number)
  eachEvent(idOf(ref), idOf(last), function(each)
    nextRef, nextNumber = each, 0
    if scanned >= MOST_SCANNED then return false end
    local isKept
    nextNumber, isKept = forgetChunks(recordsOf(each), each, each == ref and number or 0, MOST_SCANNED)
    if nextNumber then return false end
    if isKept then failedBytes[recordsOf(each)] = (failedBytes[recordsOf(each)] or 0) + KEPT_COST end
    nextRef = nil
    return true
  end)
  writeFailedBytes()
  writeBytes()
end

-- Removes the events of this slice, and returns how many there were.
local function removeEvents(last)
  local bytes, removed = 0, {}
  eachEvent('-', idOf(last), function(ref, fields)
    bytes = bytes + tonumber(fields[8])
    removed[#removed + 1] = ref
    return true
  end)
  for _, late in ipairs(redis.call('HMGET', KEY_LATE, unpack(removed))) do
    if late then bytes = bytes + LATE_COST + REFERENCE_COST * #late / 5 end
  end
  redis.call('HDEL', KEY_LATE, unpack(removed))
  redis.call('HDEL', KEY_BODY, unpack(removed))
  local sequence = tonumber(string.sub(last, 12), 16)
  redis.call('XTRIM', KEY_LOG, 'MINID', '=', string.format('%.0f-%d', msOf(last), sequence + 1))
  addBytes(-bytes)
  writeBytes()
  return #removed
end

local first = redis.call('XRANGE', KEY_LOG, '-', '+', 'COUNT', 1)[1]
if not first then
  redis.call('HDEL', KEY_META, 'cut')
  return { 'OK', 0, 0, 0, 0 }
end
local oldest = refOf(first[1])
local bucket = math.floor(msOf(oldest) / BUCKET_MS)
local last, cursor, ref, number = string.match(meta.cut or '', '^(%w+) (%S+) (%w+) (%d+)$')
if not last then
  local beforeMs = now - tonumber(meta.retentionMs or LONGEST_MS)
  -- The bucket for the records is the same for all events of a slice.
  last = chooseSlice(math.min(beforeMs, (bucket + 1) * BUCKET_MS))
  if not last then return { 'OK', 0, 0, 0, 0 } end
  cursor, ref, number = '0', oldest, 0
end
number = tonumber(number)
ARG_BUCKET = tonumber(ARG_BUCKET)
if bucket ~= ARG_BUCKET then return { 'BUCKET', bucket } end
local events, lost = 0, 0
if cursor ~= '-' and cursor ~= '=' then lost, cursor = movePositions(last, cursor) end
if cursor == '-' then
  collectReferences(last, ref, number)
  forgetReplays(endReferences())
  pruneLists(last)
  if nextRef then ref, number = nextRef, nextNumber else cursor, ref, number = '=', oldest, 0 end
end
if cursor == '=' then
  forgetRecords(last, ref, number)
  if nextRef then ref, number = nextRef, nextNumber else events = removeEvents(last) end
end
if events > 0 then gone[#gone + 1] = 'cut' else put('cut', last .. ' ' .. cursor .. ' ' .. ref .. string.format(' %d', number)) end
missed.expired = lost
local why = countedReasons(meta.why)
if why then put('why', why) end
if #set > 0 then redis.call('HSET', KEY_META, unpack(set)) end
if #gone > 0 then redis.call('HDEL', KEY_META, unpack(gone)) end
if waiting then redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, 1, 0, meta.version or '0')) end
return { 'OK', events, expired, lost, 1 }
