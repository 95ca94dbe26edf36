#!lua flags=allow-oom
-- Moves the positions of subscriptions that are behind, and joins those that reached the cursor; then reads on.
-- KEYS  1 Q:meta  2 Q:m:gen  3 Q:behind  4 Q:wake  5 Q:traf:<hour>  6.. Q:why:<6h> of the batch
-- ARGV  1 nowMs  2 epoch  3 gen  4 leaseMs  5 limit  6 from (position to read after, '' = read nothing)  7 nMoved  8 nWoken
--       then (sub, expected position, new position)*, (entry of wake that is dealt with)*, then what lib/account reads
-- Returns {OK, cur, entries of (from, cur] as lib/entries says, {sub, position}*, {entry of wake}*},
--         FENCED, REGEN, CLOSED. Main pass and catch-up of a queue are strictly serial in its owner.
--@include account
--@include entries
local now = tonumber(ARGV[1])
local m = redis.call('HMGET', KEYS[1], 'ready', 'epoch', 'gen', 'cur', 'retentionMs')
if m[1] ~= '1' then return { 'CLOSED' } end
if m[2] ~= ARGV[2] then return { 'FENCED' } end
if m[3] ~= ARGV[3] then return { 'REGEN' } end
local cur = m[4] or '0-0'
local at = 9
for _ = 1, ARGV[7] do
  if redis.call('HGET', KEYS[3], ARGV[at]) == ARGV[at + 1] then
    if ARGV[at + 2] == cur then
      redis.call('HDEL', KEYS[3], ARGV[at])
    else
      redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 2])
    end
  end
  at = at + 3
end
for _ = 1, ARGV[8] do
  redis.call('SREM', KEYS[4], ARGV[at])
  at = at + 1
end
account(at, KEYS[5], 6, m[5])
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + tonumber(ARGV[4])))
local entries = ''
if ARGV[6] ~= '' and ARGV[6] ~= cur then
  entries = flatten(redis.call('XRANGE', KEYS[2], '(' .. ARGV[6], cur, 'COUNT', ARGV[5]))
end
return { 'OK', cur, entries, redis.call('HGETALL', KEYS[3]), redis.call('SMEMBERS', KEYS[4]) }
