-- The endpoint health. The health is stored in the `slot` field of P:health, which does not exist if the last attempt
-- was successful. One text:
--   since failures next pause disabled probe
--   since     when the first attempt failed since one succeeded, ms; failures: attempts that failed from then on
--   next      while the breaker is open: nothing is claimed before, ms; pause: ms between probes, 0: it is closed
--   disabled  - or when the endpoint was disabled, ms, and g (it answered 410) or f (nothing but failures for five
--   days) probe     entry of the event whose claim probes now, or nothing
-- What began before `enabled` of the row (when the owner said that the endpoint works again) does not count any more.
local FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 1000, 60000
local isAnySick

local function writeHealth(slot, h)
  local text = string.format('%.0f %.0f %.0f %.0f ', h.since, h.failures, h.next, h.pause) .. h.disabled .. ' ' .. h.probe
  redis.call('HSET', KEY_HEALTH, slot, text)
  isAnySick = true
end

local function forgetHealth(slot)
  redis.call('HDEL', KEY_HEALTH, slot)
  redis.call('ZREM', KEY_RETRIES, slot .. '\2')
end

-- Returns the health of the slot endpoint. If it is working, or was enabled after it had failed, this returns nil.
local function healthOf(slot)
  if isAnySick == nil then isAnySick = redis.call('EXISTS', KEY_HEALTH) == 1 end
  local text = isAnySick and redis.call('HGET', KEY_HEALTH, slot)
  if not text then return nil end
  local since, failures, next, pause, disabled, probe = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  local h = { since = tonumber(since), failures = tonumber(failures), next = tonumber(next), pause = tonumber(pause) }
  h.disabled, h.probe = disabled, probe
  -- There are no pauses that are longer than this, so the clock was set back.
  if h.next > now + LONGEST_PAUSE_MS then h.next = now end
  local enabled = tonumber(enabledOf[slot])
  if enabled <= (tonumber(string.match(disabled, '^%d+')) or h.since) then return h end
  forgetHealth(slot)
  return nil
end

-- Slots that are only stopped for a moment would otherwise be stopped for as long as the clock went back. For this
-- reason, each of them is re-checked now. For the same time, slots that were given a turn before would wait for
-- those that are given one now.
local function restartSlots()
  local nowText, turns = string.format('%.0f', now), {}
  for _, field in ipairs(redis.call('HKEYS', KEY_HEALTH)) do
    redis.call('ZADD', KEY_RETRIES, 'XX', 'LT', nowText, string.sub(field, 1, 8) .. '\2')
  end
  for _, slot in ipairs(redis.call('ZRANGEBYSCORE', KEY_TURNS, '(' .. nowText, '+inf')) do
    turns[#turns + 1] = nowText
    turns[#turns + 1] = slot
  end
  inSlices('ZADD', KEY_TURNS, turns)
end

-- Counts failed attempts, none of which succeeded. `entries`: those of their claims. Returns the endpoint's health,
-- with a `pause` if the breaker is open, and whether the endpoint was disabled.
local function noteFailures(slot, failed, gone, entries)
  local OPENS_AFTER, OPENS_WITHIN_MS, OPENS_AT_ONCE = 10, 30000, 100
  local FAILING_MS, LEAST_FAILURES = 432000000, 10
  local h = healthOf(slot) or { since = now, failures = 0, next = 0, pause = 0, disabled = '-', probe = '' }
  if h.disabled ~= '-' then return h, false end
  h.failures = h.failures + failed
  if gone or (now - h.since >= FAILING_MS and h.failures >= LEAST_FAILURES) then
    h.disabled = string.format('%.0f', now) .. (gone and 'g' or 'f')
  elseif h.pause == 0 then
    if h.failures >= OPENS_AT_ONCE or (h.failures >= OPENS_AFTER and now - h.since >= OPENS_WITHIN_MS) then
      h.pause = FIRST_PAUSE_MS
      h.next = now + h.pause
    end
  elseif entries[h.probe] then
    h.pause = math.min(2 * h.pause, LONGEST_PAUSE_MS)
    h.next, h.probe = now + h.pause, ''
  end
  writeHealth(slot, h)
  return h, h.disabled ~= '-'
end

-- If something is claimed while the breaker is open, it is the probe. If the dispatcher of the probe dies, the next
-- probe can be made after a minute at most. After a rest (for example, between retries that are hours apart), pauses
-- start with a small value again. The restart only has an effect on a few lanes.
local function noteProbe(slot, h, entry)
  if now - h.next > 10 * h.pause then h.pause = FIRST_PAUSE_MS / 2 end
  h.next, h.probe = now + LONGEST_PAUSE_MS, entry
  writeHealth(slot, h)
end
