#!lua flags=allow-oom
-- Makes a router the owner of a queue, unless another one committed or took it within its lease and did not give it back.
-- KEYS  1 Q:meta
-- ARGV  1 nowMs  2 owner (unique per process start)  3 leaseMs
-- Returns {OK, epoch, gen}, {HELD, until} or {CLOSED} (missing is closed).
-- A lease that ends later than two of them from now holds nobody: the clock was set back. Up to there clocks of processes may
-- differ.
-- The epoch is above every one before it, also after a flush: max(previous + 1, now).
local now = tonumber(ARGV[1])
local m = redis.call('HMGET', KEYS[1], 'ready', 'owner', 'until', 'epoch', 'gen')
if m[1] ~= '1' then return { 'CLOSED' } end
if m[2] ~= ARGV[2] then
  local ends = m[2] and tonumber(m[3] or '0') or 0
  if ends > now and ends <= now + 2 * tonumber(ARGV[3]) then return { 'HELD', m[3] } end
  m[4] = string.format('%.0f', math.max(tonumber(m[4] or '0') + 1, now))
  redis.call('HSET', KEYS[1], 'owner', ARGV[2], 'epoch', m[4], 'until', string.format('%.0f', now + tonumber(ARGV[3])))
end
return { 'OK', m[4], m[5] }
