#!lua flags=allow-oom
-- Says that work is due, before the cursor that makes it so moves. A hint may be lowered freely.
-- KEYS  1 due  2 st
-- ARGV  1 channel  2.. (member, due ms)*
-- Returns how many hints changed. A lowered or leased hint loses its token, so that the holder's `settle` is KEPT.
local changed = 0
local soonest
for i = 2, #ARGV, 2 do
  local member, ms = ARGV[i], ARGV[i + 1]
  local leased = redis.call('HDEL', KEYS[2], member) == 1
  if redis.call('ZADD', KEYS[1], 'LT', 'CH', ms, member) == 1 then
    changed = changed + 1
    if not soonest or tonumber(ms) < soonest then soonest = tonumber(ms) end
  elseif leased then
    changed = changed + 1
  end
end
if soonest then redis.call('PUBLISH', ARGV[1], string.format('%.0f', soonest)) end
return changed
