-- What P:try keeps of an open event that was tried: attempts, claims that lapsed, when the next attempt is due (ms; 0: at
-- once), and the last 20 attempts that failed, as records have them: (',' age ' ' reason ' ' latency)*.
local function readTries(text)
  if not text then return 0, 0, 0, '' end
  local attempts, lapses, due, failed = string.match(text, '^(%d+) (%d+) (%d+)(.*)$')
  return tonumber(attempts), tonumber(lapses), tonumber(due), failed
end
local function writeTries(entry, attempts, lapses, due, failed)
  redis.call('HSET', KEY_TRIES, entry, string.format('%.0f %.0f %.0f', attempts, lapses, due) .. failed)
end

-- An event whose claim lapsed once was probably only beside what killed its dispatcher. From the second time on it is claimed
-- alone: of these a dispatcher holds one at a time.
local ALONE = 2
local function classOf(attempts, lapses)
  return lapses >= ALONE and LAPSED or attempts > 0 and RETRY or FIRST_ATTEMPT
end

local hasTries
local function triesOf(entry)
  if hasTries == nil then hasTries = redis.call('EXISTS', KEY_TRIES) == 1 end
  return hasTries and redis.call('HGET', KEY_TRIES, entry)
end
