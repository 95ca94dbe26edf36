#!lua flags=no-writes
-- References of one subscription's inbox by the time at which they were accepted, and which of them are open.
-- KEYS  1 I:s:<sub>  2 X:in  3 X:pend  4 X:cl  5 X:try  6 X:fin
-- ARGV  1 inc  2 source  3 from  4 to  5 newest first (1|0)  6 how many are looked at, at most
--       source: log (all that retention left; bounds are stream ids), final (dead, skipped and expired ones, replays too;
--       bounds are lexical, of refs), open (those alone, replays too; no bounds: all of them, in no order)
-- Returns {OK, (ref, replay id or '', group key or '' where that is not known, state of an open one or '')*} in order,
--         {GONE}, or {MANY}: more are open than may be looked at.
--@include ref
--@include lanes
--@include states
local s = redis.call('HMGET', KEYS[1], 'inc', 'unordered')
if s[1] ~= ARGV[1] then return { 'GONE' } end
local source, reverse, count = ARGV[2], ARGV[5] == '1', tonumber(ARGV[6])
local out = { 'OK' }
local function add(ref, id, gk, state)
  out[#out + 1] = ref
  out[#out + 1] = id
  out[#out + 1] = gk
  out[#out + 1] = state
end
if source == 'log' then
  local command = reverse and 'XREVRANGE' or 'XRANGE'
  local from, to = ARGV[3], ARGV[4]
  if reverse then from, to = to, from end
  for _, e in ipairs(redis.call(command, KEYS[2], from, to, 'COUNT', count)) do
    local ref, gk = refOf(e[1]), e[2][2]
    add(ref, '', gk, openState(KEYS[3], KEYS[4], KEYS[5], gk, ref, s[2]))
  end
elseif source == 'final' then
  local command = reverse and 'ZREVRANGEBYLEX' or 'ZRANGEBYLEX'
  local from, to = ARGV[3], ARGV[4]
  if reverse then from, to = to, from end
  for _, entry in ipairs(redis.call(command, KEYS[6], from, to, 'LIMIT', 0, count)) do
    add(string.sub(entry, 1, 15), string.sub(entry, 17), '', '')
  end
else
  if redis.call('ZCARD', KEYS[3]) > count then return { 'MANY' } end
  for _, member in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    local key, ref = laneKey(member)
    local gk = groupOf(key)
    add(ref, string.sub(key, #gk + 2), gk, openState(KEYS[3], KEYS[4], KEYS[5], key, ref, s[2]))
  end
end
return out
