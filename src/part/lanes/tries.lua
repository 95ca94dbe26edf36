-- Entry of an open event in P:try: attempts, lapsed claims, due time of the next attempt (ms; 0: at once), and the last 20
-- failed attempts in the format of records: (',' age ' ' reason ' ' latency)*. Before them * if the event was a dead letter
-- that was recovered. `failed` includes it.
local function readTries(text)
  if not text then return 0, 0, 0, '' end
  local attempts, lapses, due, failed = string.match(text, '^(%d+) (%d+) (%d+)(.*)$')
  return tonumber(attempts), tonumber(lapses), tonumber(due), failed
end
local function writeTries(entry, attempts, lapses, due, failed)
  redis.call('HSET', KEY_TRIES, entry, string.format('%.0f %.0f %.0f', attempts, lapses, due) .. failed)
end

-- An event whose claim lapsed once probably did not cause its dispatcher to crash. From the second lapse, it is claimed alone:
-- a dispatcher holds one such event at a time.
local ALONE = 2
local function classOf(attempts, lapses)
  return lapses >= ALONE and LAPSED or attempts > 0 and RETRY or FIRST_ATTEMPT
end

local hasTries
local function triesOf(entry)
  if hasTries == nil then hasTries = redis.call('EXISTS', KEY_TRIES) == 1 end
  return hasTries and redis.call('HGET', KEY_TRIES, entry)
end
