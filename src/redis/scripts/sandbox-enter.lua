#!lua
-- Takes room for one event of a sandbox run, or says that there is none. Runs that have ended give theirs back.
-- KEYS  1 {s:ten}:runs  2 {s:ten}:use
-- ARGV  1 nowMs  2 run  3 bytes of the event  4 ms that a new run is kept  5 most runs  6 most events of a run
--       7 most events of all runs  8 most bytes of all runs  9 most deliveries of a run  10 most deliveries of all runs
-- Returns {OK, when the run ends (ms)}, {FULL}: the run takes no more events, or {SPENT, ms}: the workspace may make no
--         more, at least until then.
local now, run, bytes = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local COUNTED = { 'events', 'bytes', 'deliveries' }
for _, ended in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])) do
  for _, what in ipairs(COUNTED) do
    local had = redis.call('HGET', KEYS[2], what .. ':' .. ended)
    if had then
      redis.call('HINCRBY', KEYS[2], what, -had)
      redis.call('HDEL', KEYS[2], what .. ':' .. ended)
    end
  end
  redis.call('ZREM', KEYS[1], ended)
end
local ends = redis.call('ZSCORE', KEYS[1], run)
local used = redis.call('HMGET', KEYS[2], 'events', 'bytes', 'deliveries', 'events:' .. run, 'deliveries:' .. run)
for i = 1, 5 do used[i] = tonumber(used[i] or '0') end
if used[4] >= tonumber(ARGV[6]) or used[5] >= tonumber(ARGV[9]) then return { 'FULL' } end
local many = not ends and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[5])
if many or used[1] >= tonumber(ARGV[7]) or used[2] + bytes > tonumber(ARGV[8]) or used[3] >= tonumber(ARGV[10]) then
  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return { 'SPENT', first[2] or ARGV[1] }
end
if not ends then
  ends = string.format('%.0f', now + tonumber(ARGV[4]))
  redis.call('ZADD', KEYS[1], ends, run)
end
for _, name in ipairs({ '', ':' .. run }) do
  redis.call('HINCRBY', KEYS[2], 'events' .. name, 1)
  redis.call('HINCRBY', KEYS[2], 'bytes' .. name, bytes)
end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', KEYS[1], last)
redis.call('PEXPIREAT', KEYS[2], last)
return { 'OK', ends }
