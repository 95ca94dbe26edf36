#!lua flags=no-writes
-- What a batch may concern: subscriptions of the queue, and the integrations that each group key is active for.
-- The gates here are a superset; `route` decides by what the integration's own slot says.
-- KEYS  1 T:meta  2 T:gates  3 T:subs:<queue>
-- ARGV  distinct group keys
-- Returns {OK, payer, its plan, {int, sub.inc}*, {int}* per group key} or {CLOSED}.
local meta = redis.call('HMGET', KEYS[1], 'ready', 'payer', 'plan')
if meta[1] ~= '1' then return { 'CLOSED' } end
local per = {}
for i, gk in ipairs(ARGV) do
  local ints = redis.call('ZRANGEBYLEX', KEYS[2], '[' .. gk .. '\0', '(' .. gk .. '\1')
  for k, v in ipairs(ints) do ints[k] = string.sub(v, #gk + 2) end
  per[i] = ints
end
return { 'OK', meta[2] or '', meta[3] or '', redis.call('HGETALL', KEYS[3]), per }
