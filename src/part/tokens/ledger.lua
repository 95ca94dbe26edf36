-- A part's ledger. It contains what was routed at the cost of its payer. Fields of P:meta:
--   used     tokens that were ever routed in this generation
--   ledger   id of the ledger, which begins with each payer; base: what `used` was then
--   given    tokens that the account ever granted to this ledger
--   granted  `used` may grow up to here; absent: no bound
--   need     tokens of the next event, while a part is held back for want of them
--   owed     ledgers that ended and were not counted yet: (account ' ' generation ' ' ledger ' ' total ';')*
--   ended    ledgers that were counted, but their accounts have not noted their end: (account ' ' generation ' ' ledger
--   ';')*
-- Ledgers in `ended` are never reported again.
local function endLedger()
  local m = redis.call('HMGET', KEY_META, 'payer', 'ledger', 'used', 'base', 'owed', 'gen', 'ended')
  local total = tonumber(m[3] or '0') - tonumber(m[4] or '0')
  local isPaid = m[1] and m[1] ~= ''
  if isPaid and total > 0 then
    local text = m[1] .. ' ' .. (m[6] or '') .. ' ' .. (m[2] or string.format('%.0f', now)) .. string.format(' %.0f;', total)
    redis.call('HSET', KEY_META, 'owed', (m[5] or '') .. text)
  elseif isPaid and m[2] then
    redis.call('HSET', KEY_META, 'ended', (m[7] or '') .. m[1] .. ' ' .. (m[6] or '') .. ' ' .. m[2] .. ';')
  end
  redis.call('HDEL', KEY_META, 'ledger', 'base', 'given', 'need')
end

-- If there is no payer, or the account plan is not known, no tokens are granted.
local function boundLedger()
  local m = redis.call('HMGET', KEY_META, 'payer', 'plan', 'used')
  if m[1] and m[2] == 'Metered' then redis.call('HDEL', KEY_META, 'granted')
  else redis.call('HSET', KEY_META, 'granted', m[3] or '0') end
end

-- Returns an id that is not used by any ledger in `owed` or `ended`.
local function newLedger(base)
  local id, m = string.format('%.0f-', now) .. base, redis.call('HMGET', KEY_META, 'owed', 'ended')
  local known = (m[1] or '') .. (m[2] or '')
  while string.find(known, ' ' .. id .. ' ', 1, true) or string.find(known, ' ' .. id .. ';', 1, true) do id = id .. '+' end
  return id
end

local function beginLedger()
  local used = redis.call('HGET', KEY_META, 'used') or '0'
  redis.call('HSET', KEY_META, 'ledger', newLedger(used), 'base', used)
  boundLedger()
end
