#!lua flags=no-writes
-- One event of a subscription's inbox: its state, and those of its replays.
-- KEYS  1 I:s:<sub>  2 X:in  3 X:pend  4 X:cl  5 X:try  6 X:rp  7 X:rec:<bucket of its ref>
-- ARGV  1 inc  2 ref  3 stream id
-- Returns {OK, group key or '' where retention removed it, (replay id or '', state of an open one, or record)*},
--         {UNKNOWN} or {GONE}.
--@include lanes
--@include states
local s = redis.call('HMGET', KEYS[1], 'inc', 'unordered')
if s[1] ~= ARGV[1] then return { 'GONE' } end
local e = redis.call('XRANGE', KEYS[2], ARGV[3], ARGV[3])[1]
local gk = e and e[2][2]
local function state(id)
  -- A test event has no entry in the log, and the group key ''.
  local of = gk or ''
  local open = openState(KEYS[3], KEYS[4], KEYS[5], id == '' and of or (of .. '\1' .. id), ARGV[2], s[2])
  if open ~= '' then return open end
  return redis.call('HGET', KEYS[7], id == '' and ARGV[2] or (ARGV[2] .. ':' .. id))
end
local first = state('')
if not first then return { 'UNKNOWN' } end
local out = { 'OK', gk or '', '', first }
for id in string.gmatch(redis.call('HGET', KEYS[6], ARGV[2]) or '', '[^,]+') do
  local replay = state(id)
  if replay then
    out[#out + 1] = id
    out[#out + 1] = replay
  end
end
return out
