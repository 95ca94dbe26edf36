-- If the clock was set back, retries would have to wait for as long as it went back. If a retry was tried at a time
-- that is in the future, it will have to wait for its delay again, starting now. `back` of P:meta: when those are due
-- that have yet to be looked at, ms; absent if none. If a retry is moved, it will be due before these. Returns true if
-- there is more to do.
local function moveRetries(from)
  local MOST = 1000
  local found = redis.call('ZRANGEBYSCORE', KEY_RETRIES, from, '+inf', 'WITHSCORES', 'LIMIT', 0, MOST)
  local moved = 0
  for i = 1, #found, 2 do
    local lane = found[i]
    -- If a slot is stopped, its entries don't have any attempts.
    local entry, ref
    if string.byte(lane, 9) ~= 2 then entry, ref = headOf(lane) end
    local attempts, lapses, due, failed = readTries(entry and triesOf(entry))
    local age = string.match(failed, ',(%x+) [^,]*$')
    local tried = age and msOf(ref) + tonumber(age, 16)
    if tried and tried > now and due > tried then
      due = now + due - tried
      writeTries(entry, attempts, lapses, due, failed)
      retryLane(lane, due)
      moved = moved + 1
    end
  end
  writeLanes()
  if #found < 2 * MOST then
    redis.call('HDEL', KEY_META, 'back')
    return false
  end
  -- If all retries of a page are due at the same time and none of them were moved, any other retries with this time are
  -- not changed.
  local last = found[#found]
  redis.call('HSET', KEY_META, 'back', (moved == 0 and found[2] == last and '(' or '') .. last)
  return true
end
