-- Why a subscription may not be given events now, as one word, or nil when it may.
local function permission(metaKey, subKey, inc)
  local meta = redis.call('HMGET', metaKey, 'ready', 'state')
  if meta[1] ~= '1' then return 'CLOSED' end
  local s = redis.call('HMGET', subKey, 'inc', 'route')
  if s[1] ~= inc or s[2] == 'closed' then return 'GONE' end
  if meta[2] == 'pending' then return 'PENDING' end
  if meta[2] ~= 'active' then return 'REVOKED' end
  if s[2] ~= 'open' then return 'PAUSED' end
  return nil
end
