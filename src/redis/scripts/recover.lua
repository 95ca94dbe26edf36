#!lua flags=allow-oom
-- Makes deliveries that failed due at once: those that wait for a retry, and dead letters, which are open again then,
-- with all their retries before them. Each keeps its place in its lane, so that order holds.
-- KEYS  1 I:s:<sub>  2 X:in  3 X:pend  4 X:due  5 X:cl  6 X:try  7 X:fin  8.. X:rec:<6h>
-- ARGV  1 nowMs  2 inc  3.. (ref, replay id or '', stream id, index of the record's key)*
-- Returns {OK, how many of them} or {GONE}. What ended otherwise, is under way, or was removed by retention is left alone.
--@include lanes
local s = redis.call('HMGET', KEYS[1], 'inc', 'unordered')
if s[1] ~= ARGV[2] then return { 'GONE' } end
local now, recovered, reopened = tonumber(ARGV[1]), 0, 0
local function wake(lane)
  -- A claimed lane goes on by itself when its attempt ends.
  if redis.call('HEXISTS', KEYS[5], lane) == 0 then redis.call('ZADD', KEYS[4], RETRIES + now, lane) end
end
for i = 3, #ARGV, 4 do
  local ref, replay, records = ARGV[i], ARGV[i + 1], KEYS[tonumber(ARGV[i + 3])]
  local e = redis.call('XRANGE', KEYS[2], ARGV[i + 2], ARGV[i + 2])[1]
  if e then
    local key = replay == '' and e[2][2] or (e[2][2] .. '\1' .. replay)
    local member, entry = key .. NUL .. ref, entryOf(key, ref)
    local lane = s[2] and member or key
    if redis.call('ZSCORE', KEYS[3], member) then
      local n, lapses, due, failed = tries(redis.call('HGET', KEYS[6], entry))
      if n > 0 and due > now and redis.call('HEXISTS', KEYS[5], lane) == 0 then
        redis.call('HSET', KEYS[6], entry, n .. ' ' .. lapses .. ' ' .. ARGV[1] .. failed)
        wake(lane)
        recovered = recovered + 1
      end
    else
      local record = redis.call('HGET', records, entry) or ''
      local ms, why, latency, failed = string.match(record, '^dead (%d+) %d+ (%S+) (%S+)(.*)$')
      if ms then
        if latency ~= '-' then failed = failed .. ' ' .. ms .. ',' .. why .. ',' .. latency end
        if select(2, string.gsub(failed, ' ', '')) > 20 then failed = string.gsub(failed, '^ [^ ]+', '') end
        redis.call('HSET', KEYS[6], entry, '0 0 0' .. failed)
        redis.call('ZADD', KEYS[3], 0, member)
        redis.call('HDEL', records, entry)
        redis.call('ZREM', KEYS[7], entry)
        wake(lane)
        recovered, reopened = recovered + 1, reopened + 1
      end
    end
  end
end
if reopened > 0 then redis.call('HINCRBY', KEYS[1], 'n:dead', -reopened) end
return { 'OK', recovered }
