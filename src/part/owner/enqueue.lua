#!lua
-- Adds events of a slot to the lanes of a replay that has already been paid for.
--@keys meta log keys subs claims lanes pending waiting turns retries tries off counts replays channel chunks*
--@args gen slot replay number ttlMs ...
-- number: of the chunk. chunks: the key of this replay alone, which lives for ttlMs, and the records of the refs. More:
-- (ref, index of the records of its ref in the list)*, oldest first
-- Returns {OK, a letter for each ref: t taken, o still open, g gone (retention removed it, or the slot is no more)}, or
--         CLOSED (missing is closed: nothing was written).
-- A chunk is only added once. The answer is stored and will be returned again, for longer than it is possible to ask
-- for it. P:rp contains the replays of each event. These are all open replays and the last 20. The record of any other
-- replay is removed if it was delivered, because it can't be found any more.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/tries.lua
--@include ../lanes/message.lua
--@include ../gate/activations.lua
--@include ../inbox/permission.lua
--@include ended.lua
--@include parking.lua
--@include requeue.lua
--@include reopening-lane.lua
--@include taking-records.lua
local KEPT = 20
local at = FIRST_CHUNKS
local before = redis.call('HGET', KEYS[at], ARG_NUMBER)
if before then return { 'OK', before } end
local word = permissionOf(ARG_SLOT)
if word == 'CLOSED' then return { 'CLOSED' } end
local meta = redis.call('HMGET', KEY_META, 'version', 'cut')
-- The sweep will soon remove all events up to this one. It does not check for their replays again.
local cut = string.match(meta[2] or '', '^%x+') or ''
readSlots({ ARG_SLOT })
local isUnorderedSlot = orderOf[ARG_SLOT] == 117

local function isOpen(groupLane, ref)
  local entry = groupLane .. '\0' .. ref
  if redis.call('ZSCORE', KEY_PENDING, entry) then return true end
  for _, claim in ipairs(redis.call('HMGET', KEY_CLAIMS, groupLane, entry)) do
    if claim and string.sub(claim, 2, 16) == ref and not isEnded(claim) then return true end
  end
  return false
end

-- Removes the record of a replay if it was delivered. `at`: index in KEYS of the records.
local function forgetDelivered(at, name)
  local record = takeRecord(at, name, ARG_SLOT, 'd')
  if record and redis.call('HGET', KEYS[at], name) == '\0' then redis.call('HDEL', KEYS[at], name) end
end

local function noteReplay(groupLane, ref, records)
  local ids, kept = {}, {}
  for id in string.gmatch(redis.call('HGET', KEY_REPLAYS, ARG_SLOT .. ref) or '', '[^,]+') do ids[#ids + 1] = id end
  for i, id in ipairs(ids) do
    local isKept = i > #ids - KEPT + 1 or isOpen(groupLane .. '\1' .. id, ref)
    if isKept then kept[#kept + 1] = id else forgetDelivered(records, ref .. ':' .. id) end
  end
  kept[#kept + 1] = ARG_REPLAY
  redis.call('HSET', KEY_REPLAYS, ARG_SLOT .. ref, table.concat(kept, ','))
end

local letters, taken = {}, 0
for i = FIRST, #ARGV, 2 do
  local ref = ARGV[i]
  local id = idOf(ref)
  local event = word ~= 'GONE' and ref > cut and redis.call('XRANGE', KEY_LOG, id, id)[1]
  local groupLane = event and ARG_SLOT .. event[2][2]
  if not event then
    letters[#letters + 1] = 'g'
  elseif isOpen(groupLane, ref) then
    letters[#letters + 1] = 'o'
  else
    local lane = groupLane .. '\1' .. ARG_REPLAY
    local entry = lane .. '\0' .. ref
    redis.call('ZADD', KEY_PENDING, 0, entry)
    parkClosed(groupLane)
    reopenLane(isUnorderedSlot and entry or lane)
    noteReplay(groupLane, ref, FIRST_CHUNKS + tonumber(ARGV[i + 1]))
    taken = taken + 1
    letters[#letters + 1] = 't'
  end
end
if taken > 0 then addCount(ARG_SLOT, 'r', taken) end
writeLanes()
writeCounts()
local answer = table.concat(letters)
redis.call('HSET', KEYS[at], ARG_NUMBER, answer)
redis.call('PEXPIRE', KEYS[at], ARG_TTL_MS)
tellWoken(meta[1])
return { 'OK', answer }
