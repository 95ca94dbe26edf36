-- Returns the number of tokens which are reserved by queues and have not been used. The tokens of `member` are not
-- included (if this is '', all tokens are included).
local function heldByOthers(hold, member)
  local held = redis.call('HGETALL', hold)
  local sum = 0
  for i = 1, #held, 2 do
    if held[i] ~= member then sum = sum + tonumber(held[i + 1]) end
  end
  return sum
end
