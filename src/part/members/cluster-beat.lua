#!lua flags=allow-oom
-- Writes the heartbeat of a dispatcher, or removes the dispatcher. It returns all dispatchers that are active. If there
-- are any changes, they are published.
--@keys members partsChanged
--@args name keptMs
-- keptMs: time for which the dispatcher is active, ms; 0 to leave.
-- Returns {OK, name*}
--@include ../lanes/clock.lua
local left = redis.call('ZREMRANGEBYSCORE', KEY_MEMBERS, '-inf', string.format('%.0f', now))
if ARG_KEPT_MS == '0' then
  left = left + redis.call('ZREM', KEY_MEMBERS, ARG_NAME)
else
  local untilMs = string.format('%.0f', now + tonumber(ARG_KEPT_MS))
  left = left + redis.call('ZADD', KEY_MEMBERS, untilMs, ARG_NAME)
  -- A dispatcher can't be active for longer than that, unless the clock was set back.
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEY_MEMBERS, '(' .. untilMs, '+inf')) do
    redis.call('ZADD', KEY_MEMBERS, untilMs, name)
  end
end
if left > 0 then redis.call('SPUBLISH', KEY_PARTS_CHANGED, '') end
return { 'OK', unpack(redis.call('ZRANGE', KEY_MEMBERS, 0, -1)) }
