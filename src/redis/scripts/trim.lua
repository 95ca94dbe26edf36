#!lua flags=allow-oom
-- Removes events of a queue that are older than retention, 1,000 a call, after the inboxes ended their references.
-- What a subscription had not been routed by then is counted, and its position moves past it: that of each which is
-- behind, and the cursor with all others.
-- KEYS  1 Q:meta  2 Q:m:gen  3 Q:b:gen  4 Q:behind  5 Q:expired  6 Q:traf:<hour>
-- ARGV  1 epoch of the owner  2 cut (stream id: everything before it goes)  3 nowMs  4.. subscriptions of the queue
-- Returns {MORE|DONE, removed, never routed (subscriptions times events)} or {FENCED}.
--@include traffic
local m = redis.call('HMGET', KEYS[1], 'epoch', 'cur', 'passed')
if m[1] ~= ARGV[1] then return { 'FENCED' } end
-- Its owner does not know yet that the queue was made anew: nothing of the old one is counted there.
if redis.call('HGET', KEYS[1], 'gen') ~= string.match(KEYS[2], ':m:([^:]*)$') then return { 'FENCED' } end
local old = redis.call('XRANGE', KEYS[2], '-', '(' .. ARGV[2], 'COUNT', 1000)
if #old == 0 then return { 'DONE', 0, 0 } end
local ms, seq = {}, {}
local function parse(id)
  local a, b = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(a), tonumber(b)
end
for i, e in ipairs(old) do ms[i], seq[i] = parse(e[1]) end
-- How many of the removed come after a position; cohorts share theirs.
local known = {}
local function after(position)
  local n = known[position]
  if n then return n end
  local pms, pseq = parse(position)
  local low, high = 1, #old + 1
  while low < high do
    local mid = math.floor((low + high) / 2)
    if ms[mid] > pms or (ms[mid] == pms and seq[mid] > pseq) then high = mid else low = mid + 1 end
  end
  known[position] = #old + 1 - low
  return known[position]
end
local last, lost = old[#old][1], 0
local behind = {}
local positions = redis.call('HGETALL', KEYS[4])
for i = 1, #positions, 2 do
  local n = after(positions[i + 1])
  behind[positions[i]] = true
  if n > 0 then
    redis.call('HINCRBY', KEYS[5], positions[i], n)
    redis.call('HSET', KEYS[4], positions[i], last)
    lost = lost + n
  end
end
local unread = after(m[2] or '0-0')
if unread > 0 then
  local bytes = 0
  for i = #old + 1 - unread, #old do bytes = bytes + tonumber(old[i][2][4]) end
  for i = 4, #ARGV do
    if not behind[ARGV[i]] then
      redis.call('HINCRBY', KEYS[5], ARGV[i], unread)
      lost = lost + unread
    end
  end
  redis.call('HSET', KEYS[1], 'cur', last, 'passed', counted(m[3], tonumber(ARGV[3]), '', unread, 0, 0))
  redis.call('HINCRBY', KEYS[6], 'in', unread)
  redis.call('HINCRBY', KEYS[6], 'notRouted', unread)
  redis.call('HINCRBY', KEYS[6], 'bytes', bytes)
end
if lost > 0 then redis.call('HINCRBY', KEYS[6], 'r:expired', lost) end
if redis.call('TTL', KEYS[6]) == -1 then redis.call('EXPIRE', KEYS[6], 691200) end
-- What `ingest` took of the quota for each; without `c` it was stored by an older version, which took the body's size.
local bytes = 0
for _, e in ipairs(old) do bytes = bytes + tonumber(e[2][6] or e[2][4]) end
for k = 2, 3 do
  redis.call('XTRIM', KEYS[k], 'MINID', last)
  redis.call('XDEL', KEYS[k], last)
end
redis.call('HINCRBY', KEYS[1], 'bytes', -bytes)
return { #old == 1000 and 'MORE' or 'DONE', #old, lost }
