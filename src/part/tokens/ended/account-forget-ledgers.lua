#!lua flags=allow-oom
-- Forgets ledgers that their parts don't have any more. All others are kept for another day.
--@keys seen ended
--@args time ...
-- time: as returned by account-due-ledgers.lua. A ledger that has another time now has ended again, or was reported.
-- More: (part.ledger, 1 if its part doesn't have it)*
-- Returns {OK}.
--@include ../../lanes/clock.lua
--@include ended-ledgers.lua
local count, sum = 0, 0
for i = FIRST, #ARGV, 2 do
  local field = ARGV[i]
  if redis.call('ZSCORE', KEY_ENDED, field) ~= ARG_TIME then
    -- The ledger has ended again, or was reported in the meantime.
  elseif ARGV[i + 1] == '1' then
    count, sum = count + 1, sum + tonumber(redis.call('HGET', KEY_SEEN, field) or '0')
    redis.call('HDEL', KEY_SEEN, field)
    redis.call('ZREM', KEY_ENDED, field)
  else
    redis.call('ZADD', KEY_ENDED, string.format('%.0f', now), field)
  end
end
if count > 0 then
  redis.call('HINCRBY', KEY_SEEN, 'forgotten', string.format('%.0f', sum))
  redis.call('HINCRBY', KEY_SEEN, 'term', 1)
end
return { 'OK' }
