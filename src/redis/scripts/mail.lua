#!lua
-- Reserves an invitation email unless its address or its account has used up all emails of the period. It can also
-- return an email that was not sent.
-- KEYS  1 A:meta  2 A:mails  3 A:mailed
-- ARGV  1 fence  2 now ms  3 period ms  4 invited address (hash)  5 uid of the Integration  6 most mails of the
--       account, or '' 7 reserve or release
-- Returns {OK}, {ADDRESS, ms} or {ACCOUNT, ms} with the time from which it is possible, or {FENCED} (a newer controller
-- leads). Another attempt for the same Integration counts as the same email. The period starts at the last attempt.
-- A:mailed has the uid of the Integration for each address, followed by '+' if an earlier attempt was not given back.
-- Since this email may have been sent, it is not returned by a later attempt.
local fence, have = tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if have > fence then return { 'FENCED' } end
local now, period, address, uid = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local text = function(ms) return string.format('%.0f', ms) end
if have < fence then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
if ARGV[7] == 'release' then
  -- If this attempt took longer than the period, the address may now belong to another Integration.
  if redis.call('HGET', KEYS[3], address) == uid then
    redis.call('ZREM', KEYS[2], address)
    redis.call('HDEL', KEYS[3], address)
  end
  return { 'OK' }
end
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now - period), 'LIMIT', 0, 1000)
if #old > 0 then
  redis.call('ZREM', KEYS[2], unpack(old))
  redis.call('HDEL', KEYS[3], unpack(old))
end
local sent = redis.call('ZSCORE', KEYS[2], address)
local by = sent and redis.call('HGET', KEYS[3], address)
if sent and by ~= uid and by ~= uid .. '+' then
  return { 'ADDRESS', text(tonumber(sent) + period) }
end
local most = tonumber(ARGV[6])
local count = redis.call('ZCARD', KEYS[2])
if most and not sent and count >= most then
  -- As soon as enough of the oldest ones are older than the period. Never, as far as we know, if none are allowed.
  local frees = redis.call('ZRANGE', KEYS[2], count - most, count - most, 'WITHSCORES')[2]
  return { 'ACCOUNT', text((tonumber(frees) or now) + period) }
end
redis.call('ZADD', KEYS[2], text(now), address)
redis.call('HSET', KEYS[3], address, sent and uid .. '+' or uid)
redis.call('PEXPIRE', KEYS[2], period)
redis.call('PEXPIRE', KEYS[3], period)
return { 'OK' }
