#!lua flags=no-writes
-- When the oldest event was accepted that the router has not brought to each of these subscriptions yet.
-- KEYS  1 Q:meta  2 Q:m:gen  3 Q:behind
-- ARGV  (int/sub.inc)*
-- Returns one ms or '' per subscription: '' when it is behind nothing.
local cur = redis.call('HGET', KEYS[1], 'cur') or '0-0'
local out, after = {}, {}
for i, position in ipairs(redis.call('HMGET', KEYS[3], unpack(ARGV))) do
  position = position or cur
  if after[position] == nil then
    local first = redis.call('XRANGE', KEYS[2], '(' .. position, '+', 'COUNT', 1)[1]
    after[position] = first and string.match(first[1], '^%d+') or ''
  end
  out[i] = after[position]
end
return out
