#!lua flags=no-writes
-- Returns the details of deliveries to a slot. It only returns as many as are possible in a short call.
--@keys meta log subs former claims pending tries records*
--@args gen slot ...
-- More: (ref, replay or '', index in KEYS of the records of its ref)*
-- Returns {OK, (group key, metadata and bytes, or '' if retention has removed the event; state)*}, or GONE. If there
--         are too many for one call, the last ones are left out, but never the first one. The state of an open event
--         begins with i, r, or p (see open-state.lua). Otherwise it begins with the outcome of its record
--         (records/records.lua), or is ''.
--@include ../lanes/refs.lua
--@include names.lua
--@include ../owner/ended.lua
--@include open-state.lua
local MOST_BYTES, MOST_CHUNKS, CHUNKS_AT_ONCE = 524288, 256, 16
if redis.call('HGET', KEY_META, 'gen') ~= ARG_GEN then return { 'GONE' } end
if redis.call('HEXISTS', KEY_SUBS, ARG_SLOT) + redis.call('HEXISTS', KEY_FORMER, ARG_SLOT) == 0 then return { 'GONE' } end
local slot = struct.pack('>I5', tonumber(ARG_SLOT, 32))

-- Returns the record for this slot from a chunk.
local function recordIn(chunk)
  if not chunk or not string.find(chunk, slot, 2, true) then return nil end
  local at = 2
  while at < #chunk do
    local last = string.find(chunk, ';', at + 5, true)
    if not last then return nil end
    if string.sub(chunk, at, at + 4) == slot then return string.sub(chunk, at + 5, last - 1) end
    at = last + 1
  end
end

local chunksRead = 0
local function recordOf(at, name)
  local chunk = redis.call('HGET', KEYS[at], name)
  if not chunk then return nil end
  local record = recordIn(chunk)
  local number = string.byte(chunk)
  while not record and number > 0 do
    local names = {}
    for each = number, math.max(1, number - CHUNKS_AT_ONCE + 1), -1 do names[#names + 1] = name .. '\0' .. each end
    for _, full in ipairs(redis.call('HMGET', KEYS[at], unpack(names))) do record = record or recordIn(full) end
    chunksRead = chunksRead + #names
    number = number - #names
  end
  return record
end

local items, lanes, entries, bytes = {}, {}, {}, 0
for i = FIRST, #ARGV, 3 do
  local ref, replay = ARGV[i], ARGV[i + 1]
  local item = { name = ref, ref = ref, records = FIRST_RECORDS + tonumber(ARGV[i + 2]), lane = ARG_SLOT }
  local id = idOf(ref)
  local event = redis.call('XRANGE', KEY_LOG, id, id)[1]
  if event then
    item.event = event[2]
    item.lane = item.lane .. event[2][2]
    bytes = bytes + #event[2][4] + #event[2][10]
  end
  if replay ~= '' then
    item.name = ref .. ':' .. replay
    item.lane = item.lane .. '\1' .. replay
  end
  item.entry = item.lane .. '\0' .. ref
  items[#items + 1] = item
  lanes[#lanes + 1] = item.lane
  lanes[#lanes + 1] = item.entry
  entries[#entries + 1] = item.entry
  if bytes > MOST_BYTES then break end
end
local claimOf, triesAt, scores = {}, {}, {}
readFields(KEY_CLAIMS, lanes, claimOf)
readFields(KEY_TRIES, entries, triesAt)
if #entries > 0 then scores = redis.call('ZMSCORE', KEY_PENDING, unpack(entries)) end

local function stateText(i, item)
  for _, lane in ipairs({ item.lane, item.entry }) do
    local claim = claimOf[lane]
    if claim and string.sub(claim, 2, 16) == item.ref and not isEnded(claim) then
      return openText(true, triesAt[item.entry])
    end
  end
  if scores[i] then return openText(false, triesAt[item.entry]) end
  return recordOf(item.records, item.name) or ''
end

local out = { 'OK' }
for i, item in ipairs(items) do
  local event = item.event or { nil, '', nil, '', nil, '' }
  out[#out + 1] = event[2]
  out[#out + 1] = event[4]
  out[#out + 1] = event[6]
  out[#out + 1] = stateText(i, item)
  if chunksRead > MOST_CHUNKS then break end
end
return out
