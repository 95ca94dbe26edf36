#!lua flags=no-writes
-- When the oldest event was accepted that is still open in each of these inboxes of one integration.
-- KEYS  (X:in, X:pend)*
-- ARGV  1 limit (references looked at per inbox)  2.. per inbox: stream id that it is known to be settled up to, or '0-0'
-- Returns (ms or '', 1 when that event is open, 0 when it is only known that nothing older is, settled up to)* per inbox.
-- Few open ones: all of them are looked at. Many: the log is, in order of time, as far as the limit reaches.
--@include ref
--@include lanes
local limit, out = tonumber(ARGV[1]), {}
for k = 1, #KEYS, 2 do
  local settled = ARGV[2 + (k - 1) / 2]
  local open, ms = redis.call('ZCARD', KEYS[k + 1]), ''
  local exact = 1
  if open > 0 and open <= limit then
    local oldest
    for _, member in ipairs(redis.call('ZRANGE', KEYS[k + 1], 0, -1)) do
      local ref = string.sub(member, -15)
      if not oldest or ref < oldest then oldest = ref end
    end
    ms, settled = string.format('%.0f', refMs(oldest)), '0-0'
  elseif open > 0 then
    exact = 0
    for _, e in ipairs(redis.call('XRANGE', KEYS[k], '(' .. settled, '+', 'COUNT', limit)) do
      ms = string.match(e[1], '^%d+')
      if redis.call('ZSCORE', KEYS[k + 1], e[2][2] .. NUL .. refOf(e[1])) then
        exact = 1
        break
      end
      settled = e[1]
    end
  end
  out[#out + 1] = ms
  out[#out + 1] = exact
  out[#out + 1] = settled
end
return out
