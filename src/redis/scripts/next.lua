#!lua flags=allow-oom
-- Commits a routed batch (the cursor moves last and only here), then reads the next one from the persisted cursor.
-- KEYS  1 Q:meta  2 Q:m:gen  3 Q:behind  4 Q:wake  5 Q:traf:<hour>  6.. Q:why:<6h> of the batch
-- ARGV  1 nowMs  2 epoch  3 gen  4 leaseMs  5 limit  6 from  7 to ('' = nothing to commit)  8 nBehind  9 nWake
--       then (sub to put behind)*, (sub to wake)*, then what lib/account reads
-- Returns {OK, cur, entries as lib/entries says, {sub, position}*, {entry of wake}*, oldest id or '', retentionMs},
--         FENCED (another owner), MOVED (cursor is not `from`), REGEN (queue was made anew), CLOSED.
-- A queue without work is let go of (until = 0), so that any router may take it at once.
--@include account
--@include entries
--@include traffic
local now = tonumber(ARGV[1])
local m = redis.call('HMGET', KEYS[1], 'ready', 'epoch', 'gen', 'cur', 'until', 'passed', 'retentionMs')
if m[1] ~= '1' then return { 'CLOSED' } end
if m[2] ~= ARGV[2] then return { 'FENCED' } end
if m[3] ~= ARGV[3] then return { 'REGEN' } end
local cur = m[4] or '0-0'
local commit = ARGV[7] ~= ''
if commit then
  if cur ~= ARGV[6] then return { 'MOVED' } end
  local at = 10
  for _ = 1, ARGV[8] do
    redis.call('HSETNX', KEYS[3], ARGV[at], cur)
    at = at + 1
  end
  for _ = 1, ARGV[9] do
    redis.call('SADD', KEYS[4], ARGV[at])
    at = at + 1
  end
  local missed = account(at, KEYS[5], 6, m[7])
  if missed > 0 then redis.call('HSET', KEYS[1], 'passed', counted(m[6], now, '', missed, 0, 0)) end
  cur = ARGV[7]
end
local entries = flatten(redis.call('XRANGE', KEYS[2], '(' .. cur, '+', 'COUNT', ARGV[5]))
local wake = redis.call('SMEMBERS', KEYS[4])
local busy = (entries ~= '' or #wake > 0) and string.format('%.0f', now + tonumber(ARGV[4])) or '0'
if commit then
  redis.call('HSET', KEYS[1], 'cur', cur, 'until', busy)
elseif busy ~= '0' or m[5] ~= '0' then
  redis.call('HSET', KEYS[1], 'until', busy)
end
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)
return { 'OK', cur, entries, redis.call('HGETALL', KEYS[3]), wake, first[1] and first[1][1] or '', m[7] }
