-- Entry of an open event in P:try: attempts, claims that lapsed after the last attempt, due time of the next attempt
-- (ms; 0: at once), and the last 20 failed attempts in the format of records: (',' age ' ' reason ' ' latency)*. If the
-- event is a dead letter that was recovered, they are preceded by * and the number of its attempts before that. Both
-- are included in `failed`.
local function readTries(text)
  if not text then return 0, 0, 0, '' end
  local attempts, lapses, due, failed = string.match(text, '^(%d+) (%d+) (%d+)(.*)$')
  return tonumber(attempts), tonumber(lapses), tonumber(due), failed
end
local function earlierOf(failed) return tonumber(string.match(failed, '^%*(%d+)') or '0') end
local function writeTries(entry, attempts, lapses, due, failed)
  redis.call('HSET', KEY_TRIES, entry, string.format('%.0f %.0f %.0f', attempts, lapses, due) .. failed)
end

-- If an event's claim has only lapsed once, the event has probably not caused its dispatcher to crash. After the
-- second lapse, the event is claimed alone. As a result, a dispatcher only holds a single event of this kind at a time.
local ALONE = 2
local function classOf(attempts, lapses)
  return lapses >= ALONE and LAPSED or attempts > 0 and RETRY or FIRST_ATTEMPT
end

local hasTries
local function triesOf(entry)
  if hasTries == nil then hasTries = redis.call('EXISTS', KEY_TRIES) == 1 end
  return hasTries and redis.call('HGET', KEY_TRIES, entry)
end

-- Updates a lane that is waiting or parked, after its first event was removed without an attempt. `head` is the first
-- event that is left. If it is due later, the lane will be retried, and this returns true. A parked lane stays parked.
local function keepLane(lane, state, head)
  local _, _, due = readTries(triesOf(head))
  if state == 'p' or due <= now then
    forgetHead(lane, state)
    return false
  end
  unwaited[#unwaited + 1] = waitOf(lane, state)
  retryLane(lane, due)
  return true
end
