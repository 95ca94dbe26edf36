-- Returns how many tokens have been reserved by queues but not spent. The tokens of `member` are not included (if this
-- is '', all of them are included).
local function heldByOthers(hold, member)
  local held = redis.call('HGETALL', hold)
  local sum = 0
  for i = 1, #held, 2 do
    if held[i] ~= member then sum = sum + tonumber(held[i + 1]) end
  end
  return sum
end
