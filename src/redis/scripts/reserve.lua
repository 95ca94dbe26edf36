#!lua flags=allow-oom
-- Sets tokens of an account aside for one batch of one queue, before it is routed: nobody else can spend them.
-- KEYS  1 A:meta  2 A:hold  3 A:holder  4 A:short
-- ARGV  1 nowMs  2 queue (`ten:queue`)  3 epoch of its owner  4 tokens of the first event that costs any
--       5 tokens of the whole batch  6 closely (1: what the last owner left unfolded was folded, costs are exact)
--       7 integrations that the batch may be charged for, separated by spaces
-- Returns {OK, tokens that may be spent, cleared (1|0: the queue was short)}, or one word:
--         LOOK (an earlier batch was never folded, or it is not enough: look closely, ask again), nothing was written, and
--         which integrations that earlier batch may have been charged for, also when nobody there subscribes any more;
--         SHORT (the account is spent), BUSY (other queues hold what is left), CLOSED (missing is closed), FENCED.
-- A hold is overwritten by its own queue, so that a crash repeats it; one that nobody repeated for 10 minutes is let go.
-- Short queues are remembered with what they need and when they asked: who tops up wakes them.
--@include balance
local now, member, epoch = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local need, amount, closely = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local holders = redis.call('HGETALL', KEYS[3])
local unclean, suspects = false, ''
for i = 1, #holders, 2 do
  local ofEpoch, since, charged = string.match(holders[i + 1], '^(%d+) (%d+) ?(.*)$')
  if holders[i] == member then
    if tonumber(ofEpoch) > epoch then return { 'FENCED' } end
    unclean, suspects = true, charged
  elseif tonumber(since) < now - 600000 then
    redis.call('HDEL', KEYS[2], holders[i])
    redis.call('HDEL', KEYS[3], holders[i])
  end
end
if unclean and not closely then return { 'LOOK', suspects } end
local m = redis.call('HMGET', KEYS[1], 'plan', 'included', 'used')
local function let(word)
  redis.call('HDEL', KEYS[2], member)
  redis.call('HDEL', KEYS[3], member)
  if word == 'BUSY' then return { word } end
  redis.call('HSET', KEYS[4], member, (word == 'CLOSED' and '0' or ARGV[4]) .. ' ' .. ARGV[1])
  return { word }
end
if not m[1] or not m[2] then return let('CLOSED') end
local granted = amount
if m[1] == 'Metered' then
  redis.call('HDEL', KEYS[2], member)
  redis.call('HDEL', KEYS[3], member)
else
  local left = tonumber(m[2]) - tonumber(m[3] or '0')
  local free = left - heldByOthers(KEYS[2], member)
  if need > free then
    if not closely then return { 'LOOK', suspects } end
    return let(need > left and 'SHORT' or 'BUSY')
  end
  granted = math.min(amount, free)
  redis.call('HSET', KEYS[2], member, string.format('%.0f', granted))
  redis.call('HSET', KEYS[3], member, ARGV[3] .. ' ' .. ARGV[1] .. ' ' .. ARGV[7])
end
return { 'OK', string.format('%.0f', granted), redis.call('HDEL', KEYS[4], member) }
