#!lua flags=allow-oom
-- Removes everything that is not removed by any other script, one page of slots at a time. This includes names in
-- P:final whose records were removed, test events which are older than the retention, marks in P:off which are not
-- needed by an open event, and slots that don't have a row.
--@keys meta log subs counts claims lanes pending waiting turns retries tries off final dropped channel records*
--@args gen cursor bucket
-- bucket: number of the first bucket in KEYS, of events that are being removed. cursor: 0, or that of the last call.
-- Returns {OK, next cursor or '' after the last page, number of test events that expired}, or GONE.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/tries.lua
--@include ../lanes/message.lua
--@include ../stored/add-bytes.lua
--@include ../stored/open-cost.lua
--@include ../records/records.lua
local PAGE, MOST_FINAL, MOST_TESTS = 100, 500, 8
local LONGEST_MS, BUCKET_MS = 2592000000, 21600000
local waiting = false
--@include ../owner/ended.lua
--@include ending.lua
local meta = redis.call('HMGET', KEY_META, 'gen', 'retentionMs', 'version', 'recs')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local refOfMs = function(ms) return string.format('%011x0000', math.max(0, ms)) end
local retentionMs = tonumber(meta[2] or LONGEST_MS)
-- All buckets before `recs` have been freed.
local cut, forgotten = refOfMs(now - retentionMs), refOfMs(tonumber(meta[4] or '0') * BUCKET_MS)

local function tidyMarks(cursor)
  local page = redis.call('HSCAN', KEY_OFF, cursor, 'COUNT', PAGE)
  local slots, gone = {}, {}
  for i = 1, #page[2], 2 do slots[#slots + 1] = slotOf(page[2][i]) end
  readSlots(slots)
  for i = 1, #page[2], 2 do
    local mark = page[2][i]
    local open = redis.call('ZRANGEBYLEX', KEY_PENDING, '[' .. mark .. '\0', '(' .. mark .. '\2', 'LIMIT', 0, 1)[1]
    if not open and flightOf[slotOf(mark)] == 0 then gone[#gone + 1] = mark end
  end
  inSlices('HDEL', KEY_OFF, gone)
  return page[1] == '0' and '' or 'o' .. page[1]
end

local function tidySlots(cursor)
  local page = redis.call('HSCAN', KEY_COUNTS, cursor, 'COUNT', PAGE)
  local slots, finals, tests, fieldsOf, repeats = {}, {}, {}, {}, false
  for i = 1, #page[2], 2 do slots[#slots + 1] = page[2][i] end
  readSlots(slots)
  for _, slot in ipairs(slots) do
    if not routeOf[slot] then redis.call('ZADD', KEY_DROPPED, 'NX', string.format('%.0f', now), slot) end
    local most = MOST_FINAL - #finals
    if most <= 0 then
      repeats = true
      break
    end
    local old = redis.call('ZRANGEBYLEX', KEY_FINAL, '[' .. slot, '(' .. slot .. forgotten, 'LIMIT', 0, most)
    for _, name in ipairs(old) do finals[#finals + 1] = name end
    local from = '[' .. slot .. '\0'
    for _, entry in ipairs(redis.call('ZRANGEBYLEX', KEY_PENDING, from, '(' .. slot .. '\0' .. cut, 'LIMIT', 0, MOST_TESTS)) do
      tests[#tests + 1] = entry
      local ref = string.sub(entry, -15)
      local at = FIRST_RECORDS + math.floor(msOf(ref) / BUCKET_MS) - ARG_BUCKET
      if at >= FIRST_RECORDS and at <= #KEYS then
        fieldsOf[at] = fieldsOf[at] or {}
        table.insert(fieldsOf[at], ref)
      end
    end
  end
  inSlices('ZREM', KEY_FINAL, finals)
  local lanes = {}
  for _, entry in ipairs(tests) do
    lanes[#lanes + 1] = slotOf(entry)
    lanes[#lanes + 1] = entry
  end
  readFields(KEY_LANES, lanes, stateOf)
  readRecords(fieldsOf)
  for _, entry in ipairs(tests) do
    local slot, ref = slotOf(entry), string.sub(entry, -15)
    local at = FIRST_RECORDS + math.floor(msOf(ref) / BUCKET_MS) - ARG_BUCKET
    local lane = stateOf[entry] and entry or slot
    expireEvent(slot, lane, entry, ref, nil, fieldsOf[at] and at, false)
  end
  continueLanes()
  if repeats or #finals == MOST_FINAL then return cursor end
  return page[1] == '0' and 'o0' or page[1]
end

ARG_BUCKET = tonumber(ARG_BUCKET)
local following
if string.byte(ARG_CURSOR) == 111 then following = tidyMarks(string.sub(ARG_CURSOR, 2)) else following = tidySlots(ARG_CURSOR) end
if following == '' then redis.call('HSET', KEY_META, 'tidied', string.format('%.0f', now)) end
if waiting then redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, 1, 0, meta[3] or '0')) end
return { 'OK', following, expired }
