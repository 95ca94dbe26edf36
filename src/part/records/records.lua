-- The final records. They are read by records/record.ts. P:rec:<6h of the ref> holds, by ref (of a replay: ref:id), the
-- records of an event's subscriptions: a byte with the number n of full chunks, then records. A full chunk contains
-- about 64 records and is stored in the field `ref NUL n`. (In one field alone each record would rewrite all others:
-- 200 KB for 10,000.)
--   record: slot in 5 bytes, outcome (d, x, X, e, s; X: dead again after it was recovered), age in hex (ms since the event was accepted), ' ', attempts in hex, ' ',
--   reason, ' ', latency in hex ms or -, then each failed attempt: ',' age ' ' reason ' ' latency; at last ';'
-- The field '' contains how many bytes of P:meta are for the failed deliveries in this key. They are given back together
-- with the key, because their records stay when the event is removed.
local CHUNK_BYTES, MOST_CHUNKS = 1536, 255
local recordsAt, changedRecords, failedBytes = {}, {}, {}

-- Returns how many bytes a failed delivery uses: its record of `bytes`, which takes up to an eighth more in memory, the
-- field, and the name in P:final. Measured with Redis 7.0.
local function failedCost(bytes) return 235 + math.ceil(9 / 8 * bytes) end

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
  if #had <= CHUNK_BYTES or string.byte(had) >= MOST_CHUNKS then return had end
  local full = string.byte(had) + 1
  redis.call('HSET', KEYS[at], name .. '\0' .. full, had)
  return string.char(full)
end

-- `note`: reason, ' ', latency. `failed` has the same format as in lanes/tries.lua.
local function addRecord(at, name, ref, slot, outcome, attempts, note, failed)
  if string.byte(failed) == 42 then
    failed = string.sub(failed, 2)
    if outcome == 'x' then outcome = 'X' end
  end
  local records = recordsAt[at]
  local had = partlyFull(at, name, records[name])
  local head = string.format('%x %x ', math.max(0, now - msOf(ref)), attempts)
  local record = packSlot(slot) .. outcome .. head .. note .. failed .. ';'
  records[name] = had .. record
  if outcome ~= 'd' then failedBytes[at] = (failedBytes[at] or 0) + failedCost(#record) end
  local changed = changedRecords[at]
  if not changed then
    changed = {}
    changedRecords[at] = changed
  end
  changed[name] = true
end

-- Earlier versions have not added the bytes of their failed deliveries, so fewer bytes are given back for them.
local function writeFailedBytes()
  for at, bytes in pairs(failedBytes) do
    local had = tonumber(redis.call('HGET', KEYS[at], '') or '0')
    local has = math.max(0, had + bytes)
    redis.call('HSET', KEYS[at], '', string.format('%.0f', has))
    addBytes(has - had)
  end
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
