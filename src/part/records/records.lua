-- The final records. records/record.ts reads them. P:rec:<6h of the ref> holds, by ref (of a replay: ref:id), the
-- records of an event's subscriptions: a byte with the number n of full chunks, then records. A full chunk contains
-- about 64 records and is stored in the `ref NUL n` field. (In one field alone each record would rewrite all others:
-- 200 KB for 10,000.) After each 40 chunks, the next ones are twice as large, because there can be thousands of failed
-- deliveries with many attempts.
--   record: slot in 5 bytes, outcome (d, x, X, e, s; X: dead again after it was recovered), age in hex (ms since the
--   event was accepted), ' ', attempts in hex, ' ', reason, ' ', latency in hex ms or -, then each failed attempt: ','
--   age ' ' reason ' ' latency; at last ';'
-- The field '' contains how many bytes of P:meta are for the failed deliveries in this key. The bytes are given back
-- together with the key because the records stay when the event is removed. Replays and test events are caused by a
-- partner, so they are not part of it. A partner can have up to 64 KiB of them in a key: the field of its slot contains
-- how many.
local CHUNK_BYTES, MOST_CHUNKS = 1536, 255
local recordsAt, changedRecords, failedBytes = {}, {}, {}

-- Returns how many bytes a failed delivery uses: its record of `bytes`, which takes up to an eighth more in memory, and
-- the name in P:final. KEPT_COST: the field of an event with such records, which is added when the event is removed.
-- Measured with Redis 7.0.
local KEPT_COST = 90
local function failedCost(bytes) return 145 + math.ceil(9 / 8 * bytes) end

-- Reads the fields that exist for (index of the key in KEYS)*.
local function readRecords(fieldsOf)
  for at, fields in pairs(fieldsOf) do
    local values = redis.call('HMGET', KEYS[at], unpack(fields))
    recordsAt[at] = recordsAt[at] or {}
    local records = recordsAt[at]
    for i, field in ipairs(fields) do records[field] = values[i] or '\0' end
  end
end

local function recordName(ref, replay) return replay and (ref .. ':' .. replay) or ref end

local function ageOf(ref) return string.format('%x', math.max(0, now - msOf(ref))) end

-- If the records of an event fill a chunk, this writes the chunk. Returns the records that are not in a full chunk.
local function partlyFull(at, name, had)
  local full = string.byte(had) + 1
  if full > MOST_CHUNKS or #had <= CHUNK_BYTES * 2 ^ math.floor(full / 40) then return had end
  redis.call('HSET', KEYS[at], name .. '\0' .. full, had)
  return string.char(full)
end

-- Returns whether there is room for another failed delivery of a slot which is a replay or a test event. The bytes of
-- the delivery are added to the field of the slot, which is removed together with the key.
local function hasRoomForOther(at, slot, bytes)
  local MOST_BYTES = 65536
  bytes = bytes + tonumber(redis.call('HGET', KEYS[at], slot) or '0')
  if bytes > MOST_BYTES then return false end
  redis.call('HSET', KEYS[at], slot, string.format('%d', bytes))
  return true
end

-- Adds a record, unless there is no room for it. `note`: reason, ' ', latency. `failed` has the same format as in
-- lanes/tries.lua. It returns whether it is listed in P:final.
local function addRecord(at, name, ref, slot, outcome, attempts, note, failed)
  local earlier, others = string.match(failed, '^%*(%d*)(.*)$')
  if earlier then
    attempts, failed = attempts + (tonumber(earlier) or 0), others
    if outcome == 'x' then outcome = 'X' end
  end
  local head = string.format('%x %x ', math.max(0, now - msOf(ref)), attempts)
  local record = packSlot(slot) .. outcome .. head .. note .. failed .. ';'
  local isListed = outcome ~= 'd'
  if isListed and (name ~= ref or isTestRef(ref)) then
    if not hasRoomForOther(at, slot, KEPT_COST + failedCost(#record)) then return false end
  elseif isListed then
    failedBytes[at] = (failedBytes[at] or 0) + failedCost(#record)
  end
  local records = recordsAt[at]
  records[name] = partlyFull(at, name, records[name]) .. record
  local changed = changedRecords[at]
  if not changed then
    changed = {}
    changedRecords[at] = changed
  end
  changed[name] = true
  return isListed
end

local function writeFailedBytes()
  for at, bytes in pairs(failedBytes) do
    redis.call('HSET', KEYS[at], '', string.format('%.0f', tonumber(redis.call('HGET', KEYS[at], '') or '0') + bytes))
    addBytes(bytes)
  end
  failedBytes = {}
end

local function writeRecords()
  writeFailedBytes()
  for at, names in pairs(changedRecords) do
    local set = {}
    for name in pairs(names) do
      set[#set + 1] = name
      set[#set + 1] = recordsAt[at][name]
    end
    redis.call('HSET', KEYS[at], unpack(set))
  end
end
