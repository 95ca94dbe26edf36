#!lua flags=allow-oom
-- Ends open deliveries of a slot on behalf of its owner. No attempt is made.
--@keys meta log subs endpoints claims lanes pending waiting turns retries tries counts final channel records*
--@args gen slot outcome ...
-- outcome: s(kipped); d(elivered, only where nothing is sent).
-- More: (group key, of a replay with \1 and its id, ref, index of the records of the ref in the list)*, at most 200
-- Returns {OK, letters: o (ended now), n (it was not open)}, or one word: GONE, PUSHED (it has an endpoint: that
-- acknowledges).
-- An attempt that is under way holds its lane until it is over, see ended.lua.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/tries.lua
--@include ../lanes/message.lua
--@include ../stored/add-bytes.lua
--@include ../stored/open-cost.lua
--@include ../records/records.lua
--@include ../../redis/scripts/lib/traffic.lua
--@include ended.lua
--@include requeue.lua
local meta = redis.call('HMGET', KEY_META, 'gen', 'version', 'out')
if meta[1] ~= ARG_GEN or redis.call('HEXISTS', KEY_SUBS, ARG_SLOT) == 0 then return { 'GONE' } end
if ARG_OUTCOME == 'd' and redis.call('HEXISTS', KEY_ENDPOINTS, ARG_SLOT) == 1 then return { 'PUSHED' } end
local items, lanes, fieldsOf = {}, {}, {}
for i = FIRST, #ARGV, 3 do
  local groupLane, ref = ARG_SLOT .. ARGV[i], ARGV[i + 1]
  local item = { ref = ref, entry = groupLane .. '\0' .. ref, at = FIRST_RECORDS + tonumber(ARGV[i + 2]) }
  item.lanes = { groupLane, item.entry }
  item.name = recordName(ref, replayOf(groupLane))
  items[#items + 1] = item
  lanes[#lanes + 1] = groupLane
  lanes[#lanes + 1] = item.entry
  fieldsOf[item.at] = fieldsOf[item.at] or {}
  table.insert(fieldsOf[item.at], item.name)
end
readSlots({ ARG_SLOT })
readFields(KEY_CLAIMS, lanes, claimOf)
readFields(KEY_LANES, lanes, stateOf)
readRecords(fieldsOf)

-- Whether there is an attempt in progress. In this case, its claim continues to hold the lane.
local function endClaim(item)
  for _, lane in ipairs(item.lanes) do
    local claim = claimOf[lane]
    if claim and string.sub(claim, 2, 16) == item.ref and not isEnded(claim) then
      setClaim(lane, markEnded(claim))
      return true
    end
  end
end

local letters, delivered = {}, 0
for _, item in ipairs(items) do
  if endClaim(item) or redis.call('ZREM', KEY_PENDING, item.entry) == 1 then
    local text = triesOf(item.entry)
    local attempts, _, _, failed = readTries(text)
    local note = ARG_OUTCOME == 's' and 'skipped -' or 'acknowledged -'
    local isListed = addRecord(item.at, item.name, item.ref, ARG_SLOT, ARG_OUTCOME, attempts, note, failed)
    if text then redis.call('HDEL', KEY_TRIES, item.entry) end
    local lane = item.lanes[1]
    if usesQuota(lane) then addBytes(-openCost(failed)) end
    if isListed then redis.call('ZADD', KEY_FINAL, 0, ARG_SLOT .. item.name) end
    if ARG_OUTCOME == 's' then
      if not isTest(lane) then addCount(ARG_SLOT, 's', 1) end
    elseif not isTest(lane) then
      addCount(ARG_SLOT, 'd', 1)
      if not replayOf(lane) then delivered = delivered + 1 end
    end
    letters[#letters + 1] = 'o'
  else
    letters[#letters + 1] = 'n'
  end
end
local settled = {}
for _, lane in ipairs(lanes) do
  if not settled[lane] and not claimOf[lane] then settleLane(lane) end
  settled[lane] = true
end
writeLanes()
writeCounts()
writeRecords()
writeBytes()
if delivered > 0 then redis.call('HSET', KEY_META, 'out', counted(meta[3], now, delivered, 0, 0)) end
tellWoken(meta[2])
return { 'OK', table.concat(letters) }
