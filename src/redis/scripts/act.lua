#!lua flags=allow-oom
-- Opens or closes one group key of one integration: the authority that routing and claiming ask.
-- KEYS  1 I:meta  2 I:act  3.. (X:pend, X:due, X:try, X:cl)* of the integration's subscriptions
-- ARGV  1 fence  2 nowMs  3 group key  4 since ms, or '' to close
-- Returns OK, SAME (nothing to do; `since` is kept) or FENCED (a newer controller leads).
-- Opening un-parks the lanes of the key, never before their retry is due.
--@include lanes
-- Nothing is made by closing what was never there: an Activation may name an integration that does not exist.
if ARGV[4] == '' and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then return 'SAME' end
local fence, have = tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if have > fence then return 'FENCED' end
if have < fence then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
local gk = ARGV[3]
if ARGV[4] == '' then return redis.call('HDEL', KEYS[2], gk) == 1 and 'OK' or 'SAME' end
if tonumber(redis.call('HGET', KEYS[2], gk) or '') then return 'SAME' end
redis.call('HSET', KEYS[2], gk, ARGV[4])
local now = tonumber(ARGV[2])
local function dueAt(at)
  return at > 0 and RETRIES + math.max(now, at) or ARGV[2]
end
-- Those of a range that are looked at in 60 s; what is claimed keeps its lease.
local function wake(pend, due, try, claims, from, to)
  local woken
  for _, member in ipairs(redis.call('ZRANGEBYLEX', pend, from, to, 'LIMIT', 0, 1000)) do
    local key, ref = laneKey(member)
    local lane = redis.call('ZSCORE', due, member) and member or key
    if lane ~= woken and redis.call('HEXISTS', claims, lane) == 0 then
      local _, _, at = tries(redis.call('HGET', try, entryOf(key, ref)))
      redis.call('ZADD', due, 'XX', dueAt(at), lane)
    end
    woken = lane
  end
end
for k = 3, #KEYS, 4 do
  local pend, due, try, claims = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local head = headOf(pend, gk)
  if head then
    if redis.call('ZSCORE', due, gk .. NUL .. head) then
      wake(pend, due, try, claims, '[' .. gk .. NUL, '(' .. gk .. '\1')
    else
      local _, _, at = tries(redis.call('HGET', try, head))
      redis.call('ZADD', due, 'NX', dueAt(at), gk)
    end
  end
  wake(pend, due, try, claims, '[' .. gk .. '\1', '(' .. gk .. '\2')
end
return 'OK'
