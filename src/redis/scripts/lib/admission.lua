-- Why nothing may go to a subscription now, as one word, or nil when it may; then its I:meta and I:s:<sub> fields.
local function admission(metaKey, subKey, gen)
  local meta = redis.call('HMGET', metaKey, 'ready', 'state', 'since', 'traffic')
  if meta[1] ~= '1' then return 'CLOSED', meta end
  local s = redis.call('HMGET', subKey, 'gen', 'route', 'since', 'epoch', 'last', 'unordered', 'skipTo', 'inc', 'tenant')
  if not s[1] or s[2] == 'closed' then return 'GONE', meta, s end
  if meta[2] == 'pending' then return 'PENDING', meta, s end
  if meta[2] ~= 'active' then return 'REVOKED', meta, s end
  if s[1] ~= gen then return 'REGEN', meta, s end
  if s[2] ~= 'open' then return 'PAUSED', meta, s end
  return nil, meta, s
end
