-- Limits how many attempts a subscription can start per second. It uses a bucket which contains a twentieth of them
-- (but at least 1) and is filled at a constant rate. The `slot:p` field of P:health contains the time at which the
-- bucket was empty, in milliseconds. Returns how many attempts can be started now, the time at which the bucket was
-- empty, and how long it takes from then until it is full (in milliseconds).
local function bucketOf(slot)
  local perSecond = paceOf[slot]
  local full = math.max(1, math.floor(perSecond / 20)) * 1000 / perSecond
  local empty = tonumber(redis.call('HGET', KEY_HEALTH, slot .. ':p') or '0')
  -- If a time is more than 1 s in the future, the clock was set back.
  if empty < now - full or empty > now + 1000 then empty = now - full end
  -- We need to add a thousandth of a millisecond, because the text that is stored has been rounded.
  return math.floor((now - empty + 0.001) * perSecond / 1000), empty, full
end
-- Takes attempts from a subscription's bucket. It writes and returns the new time at which the bucket was empty.
local function takeFromBucket(slot, empty, taken)
  empty = empty + taken * 1000 / paceOf[slot]
  redis.call('HSET', KEY_HEALTH, slot .. ':p', string.format('%.3f', empty))
  return empty
end

-- Returns an attempt that was not made. If its slot waits for the next attempt, it is re-checked now.
local function giveToBucket(slot)
  if not paceOf[slot] or paceOf[slot] == 0 then return end
  local _, empty = bucketOf(slot)
  takeFromBucket(slot, empty, -1)
  redis.call('ZADD', KEY_RETRIES, 'XX', 'LT', string.format('%.0f', now), slot .. '\2')
end
