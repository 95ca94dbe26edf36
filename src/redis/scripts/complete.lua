#!lua flags=allow-oom
-- Ends claimed attempts of one subscription.
-- KEYS  1 I:s:<sub>  2 X:pend  3 X:due  4 X:cl  5 X:try  6 X:fin  7.. X:rec:<6h>
-- ARGV  1 nowMs  2 ttlMs of a record bucket  3.. (lane, ref, token, outcome, due ms, index of the record's key, record)*
--       outcome: delivered, dead, expired (final, with record), failed (again at `due`), released (again at once, no attempt counted)
-- Returns {next due ms or '', one word per item*}: OK, GONE (not open any more), STALE (another claim holds the lane).
-- `delivered` is taken while the reference is open, whatever the token: the partner has it.
--@include lanes
local now, counts, out = tonumber(ARGV[1]), {}, { '' }
local final = { delivered = true, dead = true, expired = true }
local lanes, at = {}, {}
for i = 3, #ARGV, 7 do
  if not at[ARGV[i]] then
    lanes[#lanes + 1] = ARGV[i]
    at[ARGV[i]] = #lanes
  end
end
local holders = redis.call('HMGET', KEYS[4], unpack(lanes))
local tried = redis.call('EXISTS', KEYS[5]) == 1
local records = {}
for i = 3, #ARGV, 7 do
  local lane, ref, outcome = ARGV[i], ARGV[i + 1], ARGV[i + 3]
  local held = holders[at[lane]]
  local mine = held == ARGV[i + 2] .. '|' .. ref
  local member = laneKey(lane) .. NUL .. ref
  local word = 'OK'
  if not mine and outcome ~= 'delivered' then
    word = redis.call('ZSCORE', KEYS[2], member) and 'STALE' or 'GONE'
  elseif final[outcome] then
    if redis.call('ZREM', KEYS[2], member) == 0 then
      word = 'GONE'
    else
      local index = tonumber(ARGV[i + 5])
      records[index] = records[index] or {}
      table.insert(records[index], ref)
      table.insert(records[index], ARGV[i + 6])
      if outcome ~= 'delivered' then redis.call('ZADD', KEYS[6], now, ref) end
      if tried then redis.call('HDEL', KEYS[5], ref) end
      counts[outcome] = (counts[outcome] or 0) + 1
      if not held or string.sub(held, -15) == ref then
        if held then
          redis.call('HDEL', KEYS[4], lane)
          holders[at[lane]] = false
        end
        if headOf(KEYS[2], lane) then
          redis.call('ZADD', KEYS[3], ARGV[1], lane)
        else
          redis.call('ZREM', KEYS[3], lane)
        end
      end
    end
  elseif not redis.call('ZSCORE', KEYS[2], member) then
    word = 'GONE'
  else
    local n, lapses = tries(tried and redis.call('HGET', KEYS[5], ref))
    local due = ARGV[1]
    if outcome == 'failed' then
      n = n + 1
      due = ARGV[i + 4]
      redis.call('HSET', KEYS[5], ref, n .. ' ' .. lapses .. ' ' .. due)
      tried = true
    end
    redis.call('ZADD', KEYS[3], due, lane)
    redis.call('HDEL', KEYS[4], lane)
    holders[at[lane]] = false
  end
  out[#out + 1] = word
end
for index, fields in pairs(records) do
  redis.call('HSET', KEYS[index], unpack(fields))
  if redis.call('PTTL', KEYS[index]) < 0 then redis.call('PEXPIRE', KEYS[index], ARGV[2]) end
end
-- A subscription that is gone is not made again by its counters.
if next(counts) and redis.call('EXISTS', KEYS[1]) == 0 then counts = {} end
for outcome, n in pairs(counts) do redis.call('HINCRBY', KEYS[1], 'n:' .. outcome, n) end
local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if first[2] then out[1] = first[2] end
return out
