#!lua
-- The gate. Appends references to one subscription's inbox, atomically with the check that each may go there, and
-- charges the payer for them: each reference once, never again for a repetition.
-- KEYS  1 I:meta  2 I:act  3 I:s:<sub>  4 X:in  5 X:pend  6 X:due  7 I:led
-- ARGV  1 nowMs  2 epoch of the queue's owner  3 gen of the queue  4 payer  5.. (ref, stream id, group key, tokens)*, oldest first
-- Returns {OK, one letter per ref, generation of the ledger or '', the payer's total in it} or one word: CLOSED (missing
--         is closed), PENDING, REVOKED, GONE, REGEN, FENCED, PAUSED.
--         Letters: r routed, d routed before, a not activated, s before the subscription's own `since`, or before
--         `skipTo` (a Block ended that said SkipToNow: nothing that was accepted before goes there, however young).
-- The ledger: `gen` (made with it, so that one that was lost is told from its successor), payer → tokens ever,
-- payer:<UTC day> → tokens of that day, for 35 days.
-- `since` (of activation, acceptance and subscription): for an entry older than 10 s the key must have been active
-- when it was accepted (2 s of grace for clocks), so that a pause never gives a partner more than no pause.
--@include admission
--@include generation
--@include skiplist
--@include traffic
local word, meta, s = admission(KEYS[1], KEYS[3], ARGV[3])
if word and word ~= 'PAUSED' then return { word } end
if not isOf(s[8], KEYS[4]) then return { 'GONE' } end
if s[4] and tonumber(s[4]) > tonumber(ARGV[2]) then return { 'FENCED' } end
if word then return { word } end
local now = tonumber(ARGV[1])
local accepted, begun = tonumber(meta[3] or '0') - 2000, tonumber(s[3] or '0') - 2000
local skipTo = tonumber(s[7] or '0')
local last, n, charge = s[5] or '', 0, 0
local out, active = {}, {}
local pend, due = {}, {}
for i = 5, #ARGV, 4 do
  local ref, id, gk = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local flag
  if ref <= last and #redis.call('XRANGE', KEYS[4], id, id) > 0 then
    flag = 'd'
  else
    local since = active[gk]
    if since == nil then
      since = tonumber(redis.call('HGET', KEYS[2], gk) or false) or false
      active[gk] = since
    end
    local ms = tonumber(string.match(id, '^%d+'))
    local young = now - ms <= 10000
    if not since or not (young or (ms >= since - 2000 and ms >= accepted)) then
      flag = 'a'
    elseif ms < skipTo or (not young and ms < begun) then
      flag = 's'
    elseif ref <= last then
      -- It was refused, and its turn is over.
      flag = 'a'
    else
      redis.call('XADD', KEYS[4], id, 'g', gk)
      local member = gk .. '\0' .. ref
      pend[#pend + 1] = '0'
      pend[#pend + 1] = member
      due[#due + 1] = ARGV[1]
      due[#due + 1] = s[6] and member or gk
      n = n + 1
      charge = charge + tonumber(ARGV[i + 3])
      last = ref
      flag = 'r'
    end
  end
  out[#out + 1] = flag
end
if n > 0 then
  redis.call('ZADD', KEYS[5], unpack(pend))
  -- A lane that waits for a retry, or is claimed, keeps its time.
  redis.call('ZADD', KEYS[6], 'NX', unpack(due))
  toSkiplist(KEYS[6])
  redis.call('HSET', KEYS[3], 'last', last, 'epoch', ARGV[2])
  redis.call('HINCRBY', KEYS[3], 'n:routed', n)
  redis.call('HSET', KEYS[1], 'traffic', counted(meta[4], now, s[9] or '', 0, 0, charge))
  local today = math.floor(now / 86400000)
  redis.call('HSETNX', KEYS[7], 'gen', ARGV[1] .. '-' .. ARGV[2])
  redis.call('HINCRBY', KEYS[7], ARGV[4], charge)
  if redis.call('HINCRBY', KEYS[7], ARGV[4] .. ':' .. today, charge) == charge then
    for _, field in ipairs(redis.call('HKEYS', KEYS[7])) do
      local day = tonumber(string.match(field, ':(%d+)$'))
      if day and day <= today - 35 then redis.call('HDEL', KEYS[7], field) end
    end
  end
elseif s[4] ~= ARGV[2] then
  redis.call('HSET', KEYS[3], 'epoch', ARGV[2])
end
local led = redis.call('HMGET', KEYS[7], 'gen', ARGV[4])
return { 'OK', table.concat(out), led[1] or '', led[2] or '0' }
