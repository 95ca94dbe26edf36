-- Writes what a routed batch leaves behind: counters of the hour, and why each event did not go where.
-- ARGV from `at`: nCounters, nWhy, (counter, by)*, (index of its key, ref, text)*. Returns how many events went to nobody.
-- Reasons are appended: main pass and catch-up each say something of the same event, once.
-- Hours are kept for 8 days, reasons as long as their events, and the ids of those.
-- One event's take 8 KiB at most: what is said after that is left out.
local function account(at, traffic, firstWhy, retentionMs)
  local counters, whys = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  local missed = 0
  for _ = 1, counters do
    redis.call('HINCRBY', traffic, ARGV[at], ARGV[at + 1])
    if ARGV[at] == 'notRouted' then missed = tonumber(ARGV[at + 1]) end
    at = at + 2
  end
  if counters > 0 and redis.call('TTL', traffic) < 0 then redis.call('EXPIRE', traffic, 691200) end
  for _ = 1, whys do
    local key, text = KEYS[tonumber(ARGV[at])], ARGV[at + 2]
    local had = redis.call('HGET', key, ARGV[at + 1])
    if not had or #had + #text < 8192 then
      redis.call('HSET', key, ARGV[at + 1], had and (had .. ',' .. text) or text)
    end
    at = at + 3
  end
  for k = firstWhy, #KEYS do
    if redis.call('TTL', KEYS[k]) == -1 then
      redis.call('PEXPIRE', KEYS[k], string.format('%.0f', math.max(86400000, tonumber(retentionMs or '2592000000')) + 43200000))
    end
  end
  return missed
end
