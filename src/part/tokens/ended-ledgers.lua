-- An account keeps the total of a ledger for a day after it has ended. During this time, reports that arrive late, or
-- that are repeated because a failover has lost the end of the ledger, are not counted again. After that, the account
-- forgets the ledger, and refuses reports that have been read before (account-grant.lua).
--   A:ended  ZSET: part.ledger → time of its end, in ms
--   A:seen   `term`: how often ledgers were forgotten; `forgotten`: the sum of their totals
-- Since many ledgers are forgotten at once, the term is not increased often.
local KEPT_MS, APART_MS, MOST_AT_ONCE = 86400000, 60000, 1000

local function noteEnd(part, ledger)
  redis.call('ZADD', KEY_ENDED, string.format('%.0f', now), part .. '.' .. ledger)
end

local function forgetEnded()
  local oldest = redis.call('ZRANGE', KEY_ENDED, 0, 0, 'WITHSCORES')[2]
  if not oldest or tonumber(oldest) > now - KEPT_MS - APART_MS then return end
  local last = string.format('%.0f', now - KEPT_MS)
  local fields = redis.call('ZRANGEBYSCORE', KEY_ENDED, '-inf', last, 'LIMIT', 0, MOST_AT_ONCE)
  local sum = 0
  for _, total in ipairs(redis.call('HMGET', KEY_SEEN, unpack(fields))) do sum = sum + tonumber(total or '0') end
  redis.call('HDEL', KEY_SEEN, unpack(fields))
  redis.call('ZREM', KEY_ENDED, unpack(fields))
  redis.call('HINCRBY', KEY_SEEN, 'forgotten', string.format('%.0f', sum))
  redis.call('HINCRBY', KEY_SEEN, 'term', 1)
end
