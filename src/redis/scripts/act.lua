#!lua flags=allow-oom
-- Opens or closes one group key of one integration: the authority that `route` and `claim` ask.
-- KEYS  1 I:meta  2 I:act  3.. (X:pend, X:due, X:try)* of the integration's subscriptions
-- ARGV  1 fence  2 nowMs  3 group key  4 since ms, or '' to close
-- Returns OK, SAME (nothing to do; `since` is kept) or FENCED (a newer controller leads).
-- Opening un-parks the lanes of the key, never before their retry is due.
--@include lanes
local fence, have = tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if have > fence then return 'FENCED' end
if have < fence then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
local gk = ARGV[3]
if ARGV[4] == '' then return redis.call('HDEL', KEYS[2], gk) == 1 and 'OK' or 'SAME' end
if redis.call('HSETNX', KEYS[2], gk, ARGV[4]) == 0 then return 'SAME' end
local now = tonumber(ARGV[2])
for k = 3, #KEYS, 3 do
  local head = headOf(KEYS[k], gk)
  if head then
    if redis.call('ZSCORE', KEYS[k + 1], gk .. NUL .. head) then
      for _, member in ipairs(redis.call('ZRANGEBYLEX', KEYS[k], '[' .. gk .. NUL, '(' .. gk .. '\1', 'LIMIT', 0, 1000)) do
        local _, _, due = tries(redis.call('HGET', KEYS[k + 2], string.sub(member, #gk + 2)))
        redis.call('ZADD', KEYS[k + 1], 'XX', string.format('%.0f', math.max(now, due)), member)
      end
    else
      local _, _, due = tries(redis.call('HGET', KEYS[k + 2], head))
      redis.call('ZADD', KEYS[k + 1], 'NX', string.format('%.0f', math.max(now, due)), gk)
    end
  end
end
return 'OK'
