#!lua flags=allow-oom
-- Open references that a subscription without an endpoint may take now: lanes by how long they wait.
-- KEYS  1 I:meta  2 I:act  3 I:s:<sub>  4 X:pend  5 X:due
-- ARGV  1 nowMs  2 inc  3 most  4 all (1: whatever is open; 0: the head of each lane, what follows waits for it)
-- Returns {OK, more (1|0), (lane's key, ref)*} or one word: CLOSED (missing is closed), PENDING, REVOKED, GONE, PAUSED,
--         PUSHED (it has an endpoint). At most 1,000 lanes are looked at.
-- Lanes whose activation is gone are parked, as claiming does.
--@include lanes
--@include permission
local word = permission(KEYS[1], KEYS[3], ARGV[2])
if word then return { word } end
if redis.call('HEXISTS', KEYS[3], 'endpoint') == 1 then return { 'PUSHED' } end
local most = tonumber(ARGV[3])
local lanes = redis.call('ZRANGE', KEYS[5], 0, 999)
local out, n, more = { 'OK', 0 }, 0, #lanes == 1000
for _, lane in ipairs(lanes) do
  local key, ref = laneKey(lane)
  local gk = groupOf(key)
  if redis.call('HEXISTS', KEYS[2], gk) == 0 then
    if gk == lane then
      redis.call('ZREM', KEYS[5], lane)
    else
      redis.call('ZADD', KEYS[5], string.format('%.0f', tonumber(ARGV[1]) + 60000), lane)
    end
  else
    local members
    if ref then
      members = redis.call('ZSCORE', KEYS[4], lane) and { lane } or {}
    else
      local wanted = ARGV[4] == '1' and most - n + 1 or 1
      members = redis.call('ZRANGEBYLEX', KEYS[4], '[' .. key .. NUL, '(' .. key .. '\1', 'LIMIT', 0, wanted)
    end
    if #members == 0 then redis.call('ZREM', KEYS[5], lane) end
    for _, member in ipairs(members) do
      if n == most then
        more = true
        break
      end
      n = n + 1
      out[#out + 1] = key
      out[#out + 1] = string.sub(member, #key + 2)
    end
    if n == most and more then break end
  end
end
out[2] = more and 1 or 0
return out
