-- Ids of producers: hash → ref, in one key per hour of the ref, from 25 hours before ARG_HOUR (the hour of the caller's clock)
-- to 1 hour after it. `ids` of P:meta is the range of stored hours. The sweep removes the oldest. The ref decides whether 24
-- hours have passed. Sluice ids need no entry: a repeated one contains the ref of the event.
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

  -- Returns the refs of known hashes, by hash.
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

  -- Adds the refs whose events have Sluice ids: the log has the event, and its metadata does not begin with a producer's id.
  function noteOwn(known, refs)
    for _, ref in ipairs(refs) do
      local id = idOf(ref)
      local entry = redis.call('XRANGE', KEY_LOG, id, id)[1]
      if entry and string.sub(entry[2][4], 1, 4) ~= '{"i"' then known[ref] = ref end
    end
  end

  -- Writes (hash, ref)* stored at `ms`. Returns the new text of `ids`.
  function noteIds(pairsOf, ms)
    local hour = math.min(math.floor(ms / HOUR_MS), ARG_HOUR + 1)
    redis.call('HSET', keyOfHour(hour), unpack(pairsOf))
    return string.format('%.0f %.0f', math.min(firstHour or hour, hour), math.max(lastHour or hour, hour))
  end
end
