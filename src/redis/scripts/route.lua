#!lua
-- The gate. Appends references to one subscription's inbox, atomically with the check that each may go there.
-- KEYS  1 I:meta  2 I:act  3 I:s:<sub>  4 X:in  5 X:pend  6 X:due
-- ARGV  1 nowMs  2 epoch of the queue's owner  3 gen of the queue  4 payer  5.. (ref, stream id, group key, tokens)*, oldest first
-- Returns {OK, one letter per ref} or one word: CLOSED (missing is closed), PENDING, REVOKED, GONE, REGEN, FENCED, PAUSED.
--         Letters: r routed, d routed before, a not activated.
-- `since` (of activation, acceptance and subscription): for an entry older than 10 s the key must have been active
-- when it was accepted (2 s of grace for clocks), so that a pause never gives a partner more than no pause.
local meta = redis.call('HMGET', KEYS[1], 'ready', 'state', 'since')
if meta[1] ~= '1' then return { 'CLOSED' } end
local s = redis.call('HMGET', KEYS[3], 'gen', 'route', 'since', 'epoch', 'last', 'unordered')
if not s[1] or s[2] == 'closed' then return { 'GONE' } end
if meta[2] == 'pending' then return { 'PENDING' } end
if meta[2] ~= 'active' then return { 'REVOKED' } end
if s[1] ~= ARGV[3] then return { 'REGEN' } end
local epoch = tonumber(ARGV[2])
if s[4] and tonumber(s[4]) > epoch then return { 'FENCED' } end
if s[2] ~= 'open' then return { 'PAUSED' } end
local now = tonumber(ARGV[1])
local floor = math.max(tonumber(meta[3] or '0'), tonumber(s[3] or '0')) - 2000
local last, n = s[5] or '', 0
local out, active = {}, {}
local pend, due = {}, {}
for i = 5, #ARGV, 4 do
  local ref, id, gk = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local flag
  if ref <= last then
    flag = #redis.call('XRANGE', KEYS[4], id, id) > 0 and 'd' or 'a'
  else
    local since = active[gk]
    if since == nil then
      since = tonumber(redis.call('HGET', KEYS[2], gk) or false) or false
      active[gk] = since
    end
    local ms = tonumber(string.match(id, '^%d+'))
    if since and (now - ms <= 10000 or (ms >= since - 2000 and ms >= floor)) then
      redis.call('XADD', KEYS[4], id, 'g', gk)
      local member = gk .. '\0' .. ref
      pend[#pend + 1] = '0'
      pend[#pend + 1] = member
      due[#due + 1] = ARGV[1]
      due[#due + 1] = s[6] and member or gk
      n = n + 1
      last = ref
      flag = 'r'
    else
      flag = 'a'
    end
  end
  out[#out + 1] = flag
end
if n > 0 then
  redis.call('ZADD', KEYS[5], unpack(pend))
  -- A lane that waits for a retry, or is claimed, keeps its time.
  redis.call('ZADD', KEYS[6], 'NX', unpack(due))
  redis.call('HSET', KEYS[3], 'last', last, 'epoch', ARGV[2])
  redis.call('HINCRBY', KEYS[3], 'n:routed', n)
elseif s[4] ~= ARGV[2] then
  redis.call('HSET', KEYS[3], 'epoch', ARGV[2])
end
return { 'OK', table.concat(out) }
