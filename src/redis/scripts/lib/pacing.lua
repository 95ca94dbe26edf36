-- A subscription's limit of attempts started in a second: a bucket of a twentieth of them, or of one, that fills evenly.
-- `text`, the field `cap` of I:s:<sub>: attempts in flight at once, and after a space those in a second. `paced` is when
-- the bucket was empty, ms.
-- Returns both, attempts that may be started now, when the bucket was empty, and in how many ms from then on it is full.
local function paceOf(text, key, now)
  local inFlight, perSecond = string.match(text, '^(%d+) (%d+)$')
  perSecond = tonumber(perSecond)
  local full = math.max(1, math.floor(perSecond / 20)) * 1000 / perSecond
  local empty = tonumber(redis.call('HGET', key, 'paced') or '0')
  -- It was never empty later than now: the clock was set back.
  if empty < now - full or empty > now + 1000 then empty = now - full end
  -- A thousandth of a ms more, for the rounding of what is written as text.
  local free = math.floor((now - empty + 0.001) * perSecond / 1000)
  return tonumber(inFlight), perSecond, free, empty, full
end
