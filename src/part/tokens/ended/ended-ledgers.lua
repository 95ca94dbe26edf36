-- An account keeps the total of a ledger for at least a day after it has ended. During this time, reports that arrive
-- late, or that are repeated because a failover has lost the end of the ledger, are not counted again. After that, the
-- account forgets the ledger if its part says that it doesn't have it any more (forget-ended.ts), and refuses reports
-- that have been read before (account-grant.lua). A part that is idle may still have it, even after a long time.
--   A:ended  ZSET: part.ledger → time of its end, in ms
--   A:seen   `term`: how often ledgers were forgotten; `forgotten`: the sum of their totals
-- Since many ledgers are forgotten at once, the term is not increased often.
local KEPT_MS, APART_MS = 86400000, 60000

local function noteEnd(part, ledger)
  redis.call('ZADD', KEY_ENDED, string.format('%.0f', now), part .. '.' .. ledger)
end

-- Returns 1 if there are ledgers that may be forgotten.
local function isDue()
  local oldest = redis.call('ZRANGE', KEY_ENDED, 0, 0, 'WITHSCORES')[2]
  return oldest and tonumber(oldest) <= now - KEPT_MS - APART_MS and 1 or 0
end
