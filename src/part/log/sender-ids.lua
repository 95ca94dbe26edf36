-- The ids of producers: hash → ref. There is a key for each hour of the ref, starting 25 hours before ARG_HOUR (which
-- is the hour of the caller's clock) and ending at least 1 hour after it. `ids` of P:meta contains the range of hours
-- that are stored. If the clock was set back, it ends later. The oldest hours are removed by the sweep. The ref is used
-- to find out if 24 hours have passed. We don't need an entry for the ids of Sluice, because they contain the ref of
-- the event.
local HOUR_MS = 3600000
local readHours, knownIds, isOwn, noteOwn, noteIds
do
  local DAY_MS, HOURS_BEFORE, MOST_HOURS = 86400000, 25, 75
  local HOURS = #KEYS - FIRST_IDS + 1
  local firstHour, lastHour
  -- Returns the last hour if the caller has to declare more keys, because there is none for this hour.
  function readHours(text)
    if not text then return nil end
    local first, last = string.match(text, '^(%d+) (%d+)$')
    firstHour, lastHour = tonumber(first), tonumber(last)
    return HOURS < math.min(lastHour - ARG_HOUR + HOURS_BEFORE + 1, MOST_HOURS) and lastHour or nil
  end

  local function lastKeyHour() return ARG_HOUR - HOURS_BEFORE + HOURS - 1 end

  local function keyOfHour(hour)
    local at = hour - ARG_HOUR + HOURS_BEFORE
    if at < 0 then return nil end
    return KEYS[FIRST_IDS + math.min(at, HOURS - 1)]
  end

  -- Returns the refs for all hashes that are known, by hash.
  function knownIds(hashes)
    local known = {}
    if not firstHour or #hashes == 0 then return known end
    local first, last = math.max(firstHour, math.floor((now - DAY_MS) / HOUR_MS)), math.min(lastHour, lastKeyHour())
    for hour = first, last do
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
    local hour = math.min(math.floor(ms / HOUR_MS), lastKeyHour())
    redis.call('HSET', keyOfHour(hour), unpack(pairsOf))
    return string.format('%.0f %.0f', math.min(firstHour or hour, hour), math.max(lastHour or hour, hour))
  end
end
