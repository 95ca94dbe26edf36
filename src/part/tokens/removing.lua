-- Removes P:meta of a part. What is left of it ensures that all other scripts will return GONE. This includes ledgers
-- that its accounts have not counted yet, or whose end they have not noted.
local function removeMeta(fence, gen)
  endLedger()
  local m = redis.call('HMGET', KEY_META, 'owed', 'ended')
  redis.call('UNLINK', KEY_META)
  redis.call('HSET', KEY_META, 'fence', fence, 'gen', '-', 'was', gen)
  if m[1] then redis.call('HSET', KEY_META, 'owed', m[1]) end
  if m[2] then redis.call('HSET', KEY_META, 'ended', m[2]) end
end
