-- A subscription's limit of attempts started in a second: a bucket of a twentieth of them, or of one, that fills evenly. The
-- field `slot:p` of P:health says when it was empty, ms. Returns attempts that may be started now, when the bucket was
-- empty, and in how many ms from then on it is full.
local function bucketOf(slot)
  local perSecond = paceOf[slot]
  local full = math.max(1, math.floor(perSecond / 20)) * 1000 / perSecond
  local empty = tonumber(redis.call('HGET', KEY_HEALTH, slot .. ':p') or '0')
  -- It was never empty later than now: the clock was set back.
  if empty < now - full or empty > now + 1000 then empty = now - full end
  -- A thousandth of a ms more, for the rounding of what is written as text.
  return math.floor((now - empty + 0.001) * perSecond / 1000), empty, full
end
-- Returns when the bucket was empty, as it is written.
local function takeFromBucket(slot, empty, taken)
  empty = empty + taken * 1000 / paceOf[slot]
  redis.call('HSET', KEY_HEALTH, slot .. ':p', string.format('%.3f', empty))
  return empty
end
