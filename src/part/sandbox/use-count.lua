#!lua flags=allow-oom
-- Changes the usage of a sandbox run. Also changes the total for all runs of its workspace.
--@keys use
--@args run ...
-- More: (events|bytes|deliveries, by)*
-- Returns {OK}, or {GONE} (the run has ended, and its room was released).
if redis.call('HEXISTS', KEY_USE, 'events:' .. ARG_RUN) == 0 then return { 'GONE' } end
for i = FIRST, #ARGV, 2 do
  redis.call('HINCRBY', KEY_USE, ARGV[i], ARGV[i + 1])
  redis.call('HINCRBY', KEY_USE, ARGV[i] .. ':' .. ARG_RUN, ARGV[i + 1])
end
return { 'OK' }
