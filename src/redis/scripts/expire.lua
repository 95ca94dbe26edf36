#!lua flags=allow-oom
-- Ends the open references of one subscription that retention is about to remove, oldest first, 200 a call.
-- KEYS  1 I:s:<sub>  2 X:in  3 X:pend  4 X:due  5 X:cl  6 X:try  7 X:fin  8 X:rp  9.. X:rec buckets, oldest first
-- ARGV  1 nowMs  2 ttlMs of a record bucket  3 cut (stream id: everything before it ends)  4 number of the first bucket
--       5 ref before which no record is kept any more
-- Returns {MORE|DONE, expired}, or {OLDER, number of the bucket to begin with} when the oldest record belongs before them.
-- Replays of an event end with it. What is older than records are kept is forgotten.
--@include generation
--@include ref
--@include lanes
local seen = redis.call('XRANGE', KEYS[2], '-', '(' .. ARGV[3], 'COUNT', 200)
local first, expired, upTo = tonumber(ARGV[4]), 0, nil
-- Test events have no entry in the log; at most a few are open.
local tests = redis.call('ZRANGEBYLEX', KEYS[3], '[' .. NUL, '(' .. NUL .. refOf(ARGV[3]), 'LIMIT', 0, 100)
local oldest = seen[1] and tonumber(string.match(seen[1][1], '^%d+'))
if tests[1] then oldest = math.min(oldest or math.huge, refMs(string.sub(tests[1], 2))) end
if oldest then
  local bucket = math.floor(oldest / 21600000)
  if bucket < first then return { 'OLDER', bucket } end
end
local unordered = redis.call('HEXISTS', KEYS[1], 'unordered') == 1
local tried, replayed = redis.call('EXISTS', KEYS[6]) == 1, redis.call('EXISTS', KEYS[8]) == 1
local function finish(key, ref, records)
  local member, entry = key .. NUL .. ref, entryOf(key, ref)
  if redis.call('ZREM', KEYS[3], member) == 0 then return end
  local n, _, _, failed = tries(tried and redis.call('HGET', KEYS[6], entry))
  redis.call('HSET', records, entry, 'expired ' .. ARGV[1] .. ' ' .. n .. ' retention -' .. failed)
  if redis.call('PTTL', records) < 0 then redis.call('PEXPIRE', records, ARGV[2]) end
  redis.call('ZADD', KEYS[7], 0, entry)
  if tried then redis.call('HDEL', KEYS[6], entry) end
  local lane = unordered and member or key
  local held = redis.call('HGET', KEYS[5], lane)
  local mine = held and string.sub(held, -15) == ref
  if mine then redis.call('HDEL', KEYS[5], lane) end
  -- The claim of another event, which was begun before this one was opened again, holds the lane until it ends.
  if mine or not held then
    if headOf(KEYS[3], lane) then
      redis.call('ZADD', KEYS[4], ARGV[1], lane)
    else
      redis.call('ZREM', KEYS[4], lane)
    end
  end
  expired = expired + 1
end
for _, e in ipairs(seen) do
  local ref, gk = refOf(e[1]), e[2][2]
  local at = 9 + math.floor(refMs(ref) / 21600000) - first
  if at > #KEYS then break end
  upTo = e[1]
  finish(gk, ref, KEYS[at])
  local replays = replayed and redis.call('HGET', KEYS[8], ref)
  if replays then
    for id in string.gmatch(replays, '[^,]+') do finish(gk .. '\1' .. id, ref, KEYS[at]) end
    redis.call('HDEL', KEYS[8], ref)
  end
end
for _, member in ipairs(tests) do
  local ref = string.sub(member, 2)
  local at = 9 + math.floor(refMs(ref) / 21600000) - first
  if at <= #KEYS then finish('', ref, KEYS[at]) end
end
if upTo then
  redis.call('XTRIM', KEYS[2], 'MINID', upTo)
  redis.call('XDEL', KEYS[2], upTo)
end
redis.call('ZREMRANGEBYLEX', KEYS[7], '-', '(' .. ARGV[5])
if expired > 0 and isOf(redis.call('HGET', KEYS[1], 'inc'), KEYS[3]) then redis.call('HINCRBY', KEYS[1], 'n:expired', expired) end
local all = #seen < 200 and (#seen == 0 or seen[#seen][1] == upTo)
return { all and 'DONE' or 'MORE', expired }
