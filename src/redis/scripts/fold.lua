#!lua flags=allow-oom
-- Adds what integrations were routed at an account's cost to its balance. Their ledgers say totals, which only grow:
-- folded by max, any number of times, in any order.
-- KEYS  1 A:meta  2 A:seen  3 A:hold  4 A:holder
-- ARGV  1 queue whose hold is released ('' = none)  2 epoch of its owner  3.. (`int.generation of its ledger`, total)*
-- Returns {OK, tokens that were new}. A hold of a newer owner is left alone.
local grown = 0
for i = 3, #ARGV, 2 do
  local had, total = tonumber(redis.call('HGET', KEYS[2], ARGV[i]) or '0'), tonumber(ARGV[i + 1])
  if total > had then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    grown = grown + total - had
  end
end
if grown > 0 then redis.call('HINCRBY', KEYS[1], 'used', string.format('%.0f', grown)) end
if ARGV[1] ~= '' then
  local holder = redis.call('HGET', KEYS[4], ARGV[1])
  if holder and tonumber(string.match(holder, '^%d+')) <= tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[3], ARGV[1])
    redis.call('HDEL', KEYS[4], ARGV[1])
  end
end
return { 'OK', string.format('%.0f', grown) }
