-- After the clock was set back, retries would wait for as long as it went back. One that was tried later than now waits its
-- delay once more instead, from now on. `back` of P:meta: when those are due that have yet to be looked at, ms; absent if none.
-- A retry that is moved is due before those. Returns whether there is more to do.
local function moveRetries(from)
  local MOST = 1000
  local found = redis.call('ZRANGEBYSCORE', KEY_RETRIES, from, '+inf', 'WITHSCORES', 'LIMIT', 0, MOST)
  local moved = 0
  for i = 1, #found, 2 do
    local lane = found[i]
    -- Entries of stopped slots have no attempts.
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
  -- If all retries of a page have the same due time and none moved, other retries with this time stay unchanged.
  local last = found[#found]
  redis.call('HSET', KEY_META, 'back', (moved == 0 and found[2] == last and '(' or '') .. last)
  return true
end
