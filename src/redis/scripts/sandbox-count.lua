#!lua flags=allow-oom
-- Changes what a sandbox run has used up, and with it all runs of its workspace.
-- KEYS  1 {s:ten}:use
-- ARGV  1 run  2.. (events|bytes|deliveries, by)*
-- Returns OK, or GONE: the run has ended, and its room was given back.
if redis.call('HEXISTS', KEYS[1], 'events:' .. ARGV[1]) == 0 then return 'GONE' end
for i = 2, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('HINCRBY', KEYS[1], ARGV[i] .. ':' .. ARGV[1], ARGV[i + 1])
end
return 'OK'
