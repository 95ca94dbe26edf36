#!lua flags=allow-oom
-- Ends open references of one subscription by its owner's word, without an attempt: skipped, or acknowledged.
-- KEYS  1 I:s:<sub>  2 X:pend  3 X:due  4 X:cl  5 X:try  6 X:fin  7 I:meta  8.. X:rec:<6h>
-- ARGV  1 nowMs  2 ttlMs of a record bucket  3 inc  4 outcome: skipped; delivered (only where nothing is sent)
--       5.. (lane's key, ref, index of the record's key)*
-- Returns {OK, one word per item*}: OK, UNKNOWN, or the outcome that it has already; or {GONE}, {PUSHED} (it has an
--         endpoint: that acknowledges).
-- A lane is woken only if its head ended: another one may wait for its retry. A claim of what ended is forgotten; that of
-- another event, which was begun before this one was opened again, holds the lane until it ends.
--@include lanes
--@include traffic
local s = redis.call('HMGET', KEYS[1], 'inc', 'endpoint', 'unordered', 'tenant')
if s[1] ~= ARGV[3] then return { 'GONE' } end
local outcome = ARGV[4]
if outcome == 'delivered' and s[2] then return { 'PUSHED' } end
local why = outcome == 'skipped' and 'skipped' or 'acknowledged'
local out, ended, firsts = { 'OK' }, 0, 0
for i = 5, #ARGV, 3 do
  local key, ref, records = ARGV[i], ARGV[i + 1], KEYS[tonumber(ARGV[i + 2])]
  local member, entry = key .. NUL .. ref, entryOf(key, ref)
  local lane = s[3] and member or key
  local head = headOf(KEYS[2], lane) == ref
  local word = 'OK'
  if redis.call('ZREM', KEYS[2], member) == 0 then
    local record = redis.call('HGET', records, entry)
    word = record and string.match(record, '^%a+') or 'UNKNOWN'
  else
    local n, _, _, failed = tries(redis.call('HGET', KEYS[5], entry))
    redis.call('HSET', records, entry, outcome .. ' ' .. ARGV[1] .. ' ' .. n .. ' ' .. why .. ' -' .. failed)
    if redis.call('PTTL', records) < 0 then redis.call('PEXPIRE', records, ARGV[2]) end
    if outcome ~= 'delivered' then redis.call('ZADD', KEYS[6], 0, entry) end
    redis.call('HDEL', KEYS[5], entry)
    local held = redis.call('HGET', KEYS[4], lane)
    local mine = held and string.sub(held, -15) == ref
    if mine then redis.call('HDEL', KEYS[4], lane) end
    if head and (mine or not held) then
      if headOf(KEYS[2], lane) then
        redis.call('ZADD', KEYS[3], ARGV[1], lane)
      else
        redis.call('ZREM', KEYS[3], lane)
      end
    end
    ended = ended + 1
    if isFirst(key) then firsts = firsts + 1 end
  end
  out[#out + 1] = word
end
if ended > 0 then redis.call('HINCRBY', KEYS[1], 'n:' .. outcome, ended) end
if firsts > 0 and outcome == 'delivered' then
  local text = counted(redis.call('HGET', KEYS[7], 'traffic'), tonumber(ARGV[1]), s[4] or '', firsts, 0, 0)
  redis.call('HSET', KEYS[7], 'traffic', text)
end
return out
