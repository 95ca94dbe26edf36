-- The ids of producers: hash → ref. There is a key for each hour of the ref, starting 25 hours before ARG_HOUR (which
-- is the hour of the caller's clock) and ending 1 hour after it. `ids` of P:meta contains the range of hours that are
-- stored. The oldest hours are removed by the sweep. The ref is used to find out if 24 hours have passed. We don't need
-- an entry for the ids of Sluice, because they contain the ref of the event.
local HOUR_MS = 3600000
local readHours, knownIds, isOwn, noteOwn, noteIds
do
  local DAY_MS, HOURS_BEFORE = 86400000, 25
  local firstHour, lastHour
  function readHours(text)
    if text then
      local first, last = string.match(text, '^(%d+) (%d+)$')
      firstHour, lastHour = tonumber(first), tonumber(last)
    end
  end

  local function keyOfHour(hour)
    local at = hour - ARG_HOUR + HOURS_BEFORE
    if at < 0 then return nil end
    return KEYS[FIRST_IDS + math.min(at, HOURS_BEFORE + 1)]
  end

  -- Returns the refs for all hashes that are known, by hash.
  function knownIds(hashes)
    local known = {}
    if not firstHour or #hashes == 0 then return known end
    for hour = math.max(firstHour, math.floor((now - DAY_MS) / HOUR_MS)), math.min(lastHour, ARG_HOUR + 1) do
      local key = keyOfHour(hour)
      for i, ref in ipairs(key and redis.call('HMGET', key, unpack(hashes)) or {}) do
        if ref and now - msOf(ref) < DAY_MS then known[hashes[i]] = ref end
      end
    end
    return known
  end

  function isOwn(id) return #id == #NO_REF end

  -- Adds the refs of events that have an id from Sluice. This is the case if the event is in the log and its metadata
  -- does not start with an id from a producer.
  function noteOwn(known, refs)
    for _, ref in ipairs(refs) do
      local id = idOf(ref)
      local entry = redis.call('XRANGE', KEY_LOG, id, id)[1]
      if entry and string.sub(entry[2][4], 1, 4) ~= '{"i"' then known[ref] = ref end
    end
  end

  -- Writes (hash, ref)* that have been stored at `ms`. It returns the new text of `ids`.
  function noteIds(pairsOf, ms)
    local hour = math.min(math.floor(ms / HOUR_MS), ARG_HOUR + 1)
    redis.call('HSET', keyOfHour(hour), unpack(pairsOf))
    return string.format('%.0f %.0f', math.min(firstHour or hour, hour), math.max(lastHour or hour, hour))
  end
end
