#!lua flags=allow-oom
-- Removes the data of a subscription that was deleted. Each call processes a single slice. P:dropped contains the time
-- at which this should be done. The time is either now or the end of the retention.
--@keys meta log subs counts claims lanes pending waiting turns retries tries off health final answers lists replays deadLetters dropped former
--@args gen
-- Returns {OK, 1 if there is more to do}, or GONE.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/tries.lua
--@include ../stored/add-bytes.lua
--@include ../stored/open-cost.lua
--@include ../lists/packing.lua
--@include ../lists/pruning.lua
local MOST, CLAIMED_MS = 500, 30000
if redis.call('HGET', KEY_META, 'gen') ~= ARG_GEN then return { 'GONE' } end
local slot = redis.call('ZRANGEBYSCORE', KEY_DROPPED, '-inf', now, 'LIMIT', 0, 1)[1]
if not slot then return { 'OK', 0 } end
-- In the meantime, the subscription has been recreated.
if redis.call('HEXISTS', KEY_SUBS, slot) == 1 then
  redis.call('ZREM', KEY_DROPPED, slot)
  redis.call('HDEL', KEY_FORMER, slot)
  return { 'OK', 1 }
end
local function membersOf(key)
  return redis.call('ZRANGEBYLEX', key, '[' .. slot, '(' .. slot .. '\255', 'LIMIT', 0, MOST)
end

local entries = membersOf(KEY_PENDING)
local lanes, marks, seen = { slot .. '\2' }, {}, {}
for _, entry in ipairs(entries) do
  local lane = string.sub(entry, 1, -17)
  for _, each in ipairs({ lane, entry }) do
    if not seen[each] then lanes[#lanes + 1] = each end
    seen[each] = true
  end
  marks[#marks + 1] = groupOf(lane)
end
readFields(KEY_LANES, lanes, stateOf)
for _, lane in ipairs(lanes) do
  local state = stateOf[lane]
  if state and state ~= 'r' and state ~= 'p' then unwaited[#unwaited + 1] = waitOf(lane, state) end
  if state then setState(lane, false) end
end
local triesAt = {}
readFields(KEY_TRIES, entries, triesAt)
for _, entry in ipairs(entries) do
  local _, _, _, failed = readTries(triesAt[entry])
  if usesQuota(entry) then addBytes(-openCost(failed)) end
end
writeBytes()
inSlices('ZREM', KEY_PENDING, entries)
inSlices('ZREM', KEY_RETRIES, lanes)
inSlices('HDEL', KEY_TRIES, entries)
inSlices('HDEL', KEY_OFF, marks)
writeLanes()
if #entries == MOST then return { 'OK', 1 } end

local finals = membersOf(KEY_FINAL)
inSlices('ZREM', KEY_FINAL, finals)
if #finals == MOST then return { 'OK', 1 } end
local waits = membersOf(KEY_WAITING)
inSlices('ZREM', KEY_WAITING, waits)
if #waits == MOST then return { 'OK', 1 } end

-- There can only be replays for events that are still in the slot inbox. For all others, they have been removed
-- by retention.
local more, lists = pruneList(slot, 'g')
local replays = {}
for _, text in ipairs(lists) do
  for at = 1, #text, REF_BYTES do replays[#replays + 1] = slot .. unpackRef(text, at) end
end
inSlices('HDEL', KEY_REPLAYS, replays)
if more then return { 'OK', 1 } end

local first, last = string.match(redis.call('HGET', KEY_ANSWERS, slot) or '0 0 0', '^(%d+) (%d+)')
local answers = { slot }
for number = tonumber(first), tonumber(last) - 1 do answers[#answers + 1] = slot .. string.format(':%.0f', number) end
redis.call('HDEL', KEY_ANSWERS, unpack(answers))
redis.call('HDEL', KEY_HEALTH, slot, slot .. ':p')
redis.call('HDEL', KEY_DEAD_LETTERS, slot)
redis.call('ZREM', KEY_TURNS, slot)
-- If there is an attempt in progress, it is still counted when it ends. It is possible that its event is left behind.
local flight = string.match(redis.call('HGET', KEY_COUNTS, slot) or '0', '^%d+')
if flight ~= '0' and redis.call('EXISTS', KEY_CLAIMS) == 1 then
  redis.call('ZADD', KEY_DROPPED, string.format('%.0f', now + CLAIMED_MS), slot)
else
  redis.call('HDEL', KEY_COUNTS, slot)
  -- If the inbox was removed immediately, its events can still be looked up until the end of their retention.
  local former = string.sub(redis.call('HGET', KEY_FORMER, slot) or '0', 1, 13)
  if now < tonumber(former) then
    redis.call('ZADD', KEY_DROPPED, former, slot)
  else
    redis.call('ZREM', KEY_DROPPED, slot)
    redis.call('HDEL', KEY_FORMER, slot)
  end
end
return { 'OK', 1 }
