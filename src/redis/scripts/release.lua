#!lua flags=allow-oom
-- Gives a queue back: any router may own it at once.
-- KEYS  1 Q:meta  2 Q:m:gen
-- ARGV  1 epoch  2 read (1: the caller has read all events, and only waits for somebody to be caught up)
-- Returns OK, WORK (there are events to read; nothing was written) or FENCED (another router owns it by now).
-- What is not read yet keeps `until`: ingress goes on to rely on the hint, which the one who gives back leaves due. A
-- queue that was read is asleep, and says so in the step that finds it, or an event would wait for that hint.
local m = redis.call('HMGET', KEYS[1], 'epoch', 'cur')
if m[1] ~= ARGV[1] then return 'FENCED' end
if ARGV[2] == '1' then
  if #redis.call('XRANGE', KEYS[2], '(' .. (m[2] or '0-0'), '+', 'COUNT', 1) > 0 then return 'WORK' end
  redis.call('HSET', KEYS[1], 'until', '0')
end
redis.call('HDEL', KEYS[1], 'owner')
return 'OK'
