#!lua
-- Reserves room for a single event of a sandbox run, if there is enough room. If a run has ended, its room is released.
--@keys runs use
--@args now run bytes kept runs eventsOfRun events mostBytes deliveriesOfRun deliveries
-- now: ms. bytes: size of the event. kept: ms that a new run is kept. The others are limits for one run or for all runs
-- of the workspace.
-- Returns {OK, end of the run (ms)}, {FULL} (the run accepts no more events), or {SPENT, ms} (the workspace has reached
--         a limit, at least until then).
local run, bytes = ARG_RUN, tonumber(ARG_BYTES)
local COUNTED = { 'events', 'bytes', 'deliveries' }
for _, ended in ipairs(redis.call('ZRANGEBYSCORE', KEY_RUNS, '-inf', ARG_NOW)) do
  for _, what in ipairs(COUNTED) do
    local had = redis.call('HGET', KEY_USE, what .. ':' .. ended)
    if had then
      redis.call('HINCRBY', KEY_USE, what, -had)
      redis.call('HDEL', KEY_USE, what .. ':' .. ended)
    end
  end
  redis.call('ZREM', KEY_RUNS, ended)
end
local ends = redis.call('ZSCORE', KEY_RUNS, run)
local used = redis.call('HMGET', KEY_USE, 'events', 'bytes', 'deliveries', 'events:' .. run, 'deliveries:' .. run)
for i = 1, 5 do used[i] = tonumber(used[i] or '0') end
if used[4] >= tonumber(ARG_EVENTS_OF_RUN) or used[5] >= tonumber(ARG_DELIVERIES_OF_RUN) then return { 'FULL' } end
local many = not ends and redis.call('ZCARD', KEY_RUNS) >= tonumber(ARG_RUNS)
if many or used[1] >= tonumber(ARG_EVENTS) or used[2] + bytes > tonumber(ARG_MOST_BYTES) or used[3] >= tonumber(ARG_DELIVERIES) then
  local first = redis.call('ZRANGE', KEY_RUNS, 0, 0, 'WITHSCORES')
  return { 'SPENT', first[2] or ARG_NOW }
end
if not ends then
  ends = string.format('%.0f', tonumber(ARG_NOW) + tonumber(ARG_KEPT))
  redis.call('ZADD', KEY_RUNS, ends, run)
end
for _, name in ipairs({ '', ':' .. run }) do
  redis.call('HINCRBY', KEY_USE, 'events' .. name, 1)
  redis.call('HINCRBY', KEY_USE, 'bytes' .. name, bytes)
end
local last = redis.call('ZRANGE', KEY_RUNS, -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', KEY_RUNS, last)
redis.call('PEXPIREAT', KEY_USE, last)
return { 'OK', ends }
