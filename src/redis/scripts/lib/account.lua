-- Writes what a routed batch leaves behind: counters of the hour, and why each event did not go where.
-- ARGV from `at`: nCounters, nWhy, (counter, by)*, (index of its key, ref, text)*. Returns the index after them.
-- Reasons are appended: main pass and catch-up each say something of the same event, once.
-- Hours are kept for 8 days, reasons for 31.
local function account(at, traffic, firstWhy)
  local counters, whys = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  for _ = 1, counters do
    redis.call('HINCRBY', traffic, ARGV[at], ARGV[at + 1])
    at = at + 2
  end
  if counters > 0 and redis.call('TTL', traffic) < 0 then redis.call('EXPIRE', traffic, 691200) end
  for _ = 1, whys do
    local key, text = KEYS[tonumber(ARGV[at])], ARGV[at + 2]
    local had = redis.call('HGET', key, ARGV[at + 1])
    redis.call('HSET', key, ARGV[at + 1], had and (had .. ',' .. text) or text)
    at = at + 3
  end
  for k = firstWhy, #KEYS do
    if redis.call('TTL', KEYS[k]) == -1 then redis.call('EXPIRE', KEYS[k], 2678400) end
  end
  return at
end
