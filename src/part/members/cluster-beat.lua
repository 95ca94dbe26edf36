#!lua flags=allow-oom
-- Says that a dispatcher is at work, or that it leaves, and lists those that are at work. Tells all of them of a change.
--@keys members partsChanged
--@args name keptMs
-- keptMs: how long it counts as at work, ms; 0 to leave.
-- Returns {OK, name*}
--@include ../lanes/clock.lua
local left = redis.call('ZREMRANGEBYSCORE', KEY_MEMBERS, '-inf', string.format('%.0f', now))
if ARG_KEPT_MS == '0' then
  left = left + redis.call('ZREM', KEY_MEMBERS, ARG_NAME)
else
  local untilMs = string.format('%.0f', now + tonumber(ARG_KEPT_MS))
  left = left + redis.call('ZADD', KEY_MEMBERS, untilMs, ARG_NAME)
  -- Nobody counts for longer than that: the clock was set back.
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEY_MEMBERS, '(' .. untilMs, '+inf')) do
    redis.call('ZADD', KEY_MEMBERS, untilMs, name)
  end
end
if left > 0 then redis.call('SPUBLISH', KEY_PARTS_CHANGED, '') end
return { 'OK', unpack(redis.call('ZRANGE', KEY_MEMBERS, 0, -1)) }
