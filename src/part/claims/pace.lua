-- Limits the attempts that a subscription starts per second, using a bucket of a twentieth of them, at least 1, that fills
-- evenly. The field `slot:p` of P:health is the time at which it was empty, ms. Returns the number of attempts that may start
-- now, the time at which the bucket was empty, and the ms from then until it is full.
local function bucketOf(slot)
  local perSecond = paceOf[slot]
  local full = math.max(1, math.floor(perSecond / 20)) * 1000 / perSecond
  local empty = tonumber(redis.call('HGET', KEY_HEALTH, slot .. ':p') or '0')
  -- A time more than 1 s ahead means that the clock was set back.
  if empty < now - full or empty > now + 1000 then empty = now - full end
  -- Adds a thousandth of a ms because the stored text is rounded.
  return math.floor((now - empty + 0.001) * perSecond / 1000), empty, full
end
-- Takes attempts from the bucket. Returns and writes the new time at which it was empty.
local function takeFromBucket(slot, empty, taken)
  empty = empty + taken * 1000 / paceOf[slot]
  redis.call('HSET', KEY_HEALTH, slot .. ':p', string.format('%.3f', empty))
  return empty
end
