-- Returns the tokens that queues have reserved but not spent, except those of `member` ('' excludes none).
local function heldByOthers(hold, member)
  local held = redis.call('HGETALL', hold)
  local sum = 0
  for i = 1, #held, 2 do
    if held[i] ~= member then sum = sum + tonumber(held[i + 1]) end
  end
  return sum
end
