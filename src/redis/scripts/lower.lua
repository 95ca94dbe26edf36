#!lua flags=allow-oom
-- Announces due work. This must be called before moving the corresponding cursor. A hint can always be lowered.
-- KEYS  1 due  2 st
-- ARGV  1 channel  2.. (member, due ms)*
-- Returns the number of changed hints. A hint that is lowered or leased loses its token. As a result, `settle` returns
-- KEPT to the holder. Publishes `<soonest ms> <member>*`, the time alone when the members are many; also of a hint that
-- stands as low already: who works on it without having picked it anew would not hear of it otherwise. In this case,
-- nothing is written.
local MOST_NAMED = 32
local changed, soonest, named = 0, nil, {}
for i = 2, #ARGV, 2 do
  local member, ms = ARGV[i], tonumber(ARGV[i + 1])
  local leased = redis.call('HDEL', KEYS[2], member) == 1
  local lowered = redis.call('ZADD', KEYS[1], 'LT', 'CH', ARGV[i + 1], member) == 1
  if leased or lowered then changed = changed + 1 end
  if not soonest or ms < soonest then soonest = ms end
  named[#named + 1] = member
end
local message = string.format('%.0f', soonest)
if #named <= MOST_NAMED then message = message .. ' ' .. table.concat(named, ' ') end
redis.call('PUBLISH', ARGV[1], message)
return changed
