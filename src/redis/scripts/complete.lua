#!lua flags=allow-oom
-- Ends claimed attempts of one subscription.
-- KEYS  1 I:s:<sub>  2 X:pend  3 X:due  4 X:cl  5 X:try  6 X:fin  7.. X:rec:<6h>
-- ARGV  1 nowMs  2 ttlMs of a record bucket  3.. (lane, ref, token, outcome, due ms, index of the record's key, record)*
--       outcome: delivered, dead, expired (final, with record), failed (again at `due`), released (again at once, no attempt counted)
-- Returns one word per item: OK, GONE (not open any more), STALE (another claim holds the lane).
-- `delivered` is taken while the reference is open, whatever the token: the partner has it.
--@include lanes
local now, counts, out = tonumber(ARGV[1]), {}, {}
local final = { delivered = true, dead = true, expired = true }
for i = 3, #ARGV, 7 do
  local lane, ref, outcome = ARGV[i], ARGV[i + 1], ARGV[i + 3]
  local gk = laneKey(lane)
  local member = gk .. NUL .. ref
  local held = redis.call('HGET', KEYS[4], lane)
  local word = 'OK'
  if not redis.call('ZSCORE', KEYS[2], member) then
    word = 'GONE'
  elseif held ~= ARGV[i + 2] .. '|' .. ref and outcome ~= 'delivered' then
    word = 'STALE'
  elseif final[outcome] then
    local rec = KEYS[tonumber(ARGV[i + 5])]
    redis.call('HSET', rec, ref, ARGV[i + 6])
    if redis.call('PTTL', rec) < 0 then redis.call('PEXPIRE', rec, ARGV[2]) end
    if outcome ~= 'delivered' then redis.call('ZADD', KEYS[6], now, ref) end
    redis.call('ZREM', KEYS[2], member)
    redis.call('HDEL', KEYS[5], ref)
    counts[outcome] = (counts[outcome] or 0) + 1
    if not held or string.sub(held, -15) == ref then
      if held then redis.call('HDEL', KEYS[4], lane) end
      if headOf(KEYS[2], lane) then
        redis.call('ZADD', KEYS[3], ARGV[1], lane)
      else
        redis.call('ZREM', KEYS[3], lane)
      end
    end
  else
    local n, lapses = tries(redis.call('HGET', KEYS[5], ref))
    local due = ARGV[1]
    if outcome == 'failed' then
      n = n + 1
      due = ARGV[i + 4]
      redis.call('HSET', KEYS[5], ref, n .. ' ' .. lapses .. ' ' .. due)
    end
    redis.call('ZADD', KEYS[3], due, lane)
    redis.call('HDEL', KEYS[4], lane)
  end
  out[#out + 1] = word
end
-- A subscription that is gone is not made again by its counters.
if next(counts) and redis.call('EXISTS', KEYS[1]) == 0 then counts = {} end
for outcome, n in pairs(counts) do redis.call('HINCRBY', KEYS[1], 'n:' .. outcome, n) end
return out
