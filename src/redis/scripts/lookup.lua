#!lua flags=no-writes
-- What a batch may concern: subscriptions of the queue, and which integrations each group key is active for.
-- The gates here are a superset; `route` decides by what the integration's own slot says.
-- KEYS  1 T:meta  2 T:gates  3 T:subs:<queue>
-- ARGV  distinct group keys, 256 at most
-- Returns {OK, payer, its plan, {int, sub.inc}*, a line for each group key: integrations separated by spaces}
--         or {CLOSED}.
-- Where few subscribe, they alone are looked for, in one command: that takes a tenth of reading each key's range. The
-- ranges may also name integrations that do not subscribe.
local FEW = 8
local meta = redis.call('HMGET', KEYS[1], 'ready', 'payer', 'plan')
if meta[1] ~= '1' then return { 'CLOSED' } end
local subs = redis.call('HGETALL', KEYS[3])
local per, gates = {}, {}
local few = #subs <= 2 * FEW
for i, gk in ipairs(ARGV) do
  if few then
    per[i] = ''
    for k = 1, #subs, 2 do gates[#gates + 1] = gk .. '\0' .. subs[k] end
  else
    local open = redis.call('ZRANGEBYLEX', KEYS[2], '[' .. gk .. '\0', '(' .. gk .. '\1')
    for k, gate in ipairs(open) do open[k] = string.sub(gate, #gk + 2) end
    per[i] = table.concat(open, ' ')
  end
end
if #gates > 0 then
  for at, score in ipairs(redis.call('ZMSCORE', KEYS[2], unpack(gates))) do
    if score then
      local i, k = math.floor((at - 1) * 2 / #subs) + 1, (at - 1) * 2 % #subs + 1
      per[i] = per[i] == '' and subs[k] or per[i] .. ' ' .. subs[k]
    end
  end
end
return { 'OK', meta[2] or '', meta[3] or '', subs, table.concat(per, '\n') }
