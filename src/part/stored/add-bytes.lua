-- Changes the number of bytes that are stored by a part, which can't become negative.
local function addBytes(by)
  if by == 0 then return end
  local bytes = tonumber(redis.call('HGET', KEY_META, 'bytes') or '0') + by
  redis.call('HSET', KEY_META, 'bytes', string.format('%.0f', math.max(0, bytes)))
end
