#!lua flags=allow-oom
-- Claims due lanes of one subscription: an attempt starts when its claim commits.
-- KEYS  1 I:meta  2 I:act  3 I:s:<sub>  4 X:pend  5 X:due  6 X:cl  7 X:try
-- ARGV  1 nowMs  2 room (claims that can be sent at once)  3 token  4 leaseMs
-- Returns {OK, cfgv, next due ms or '', more (1: look again at once), (lane, ref, attempts, lapses)*} or
--         one word: CLOSED (missing is closed), PAUSED (not sending now), GONE.
-- A lane whose activation is gone is parked (the activation un-parks it); without order, or of a replay, it is looked
-- at again in 60 s.
-- A claim whose lease passed is claimed anew and counted as a lapse. At the cap only such lanes are looked for: behind
-- older lanes that wait for room they would never be seen, and a dead dispatcher's claims would hold the cap for ever.
--@include generation
--@include lanes
if redis.call('HGET', KEYS[1], 'ready') ~= '1' then return { 'CLOSED' } end
local s = redis.call('HMGET', KEYS[3], 'send', 'cap', 'cfgv', 'inc')
if not s[1] or not isOf(s[4], KEYS[4]) then return { 'GONE' } end
if s[1] ~= 'open' or redis.call('HGET', KEYS[1], 'state') ~= 'active' then return { 'PAUSED' } end
local now, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local free = tonumber(s[2]) - redis.call('HLEN', KEYS[6])
local lease = string.format('%.0f', now + tonumber(ARGV[4]))
local out, taken, full = { 'OK', s[3], '', 0 }, 0, false
local lanes = {}
if free > 0 then
  lanes = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', ARGV[1], 'LIMIT', 0, 64)
else
  for _, lane in ipairs(redis.call('HKEYS', KEYS[6])) do
    local due = redis.call('ZSCORE', KEYS[5], lane)
    if not due then
      redis.call('HDEL', KEYS[6], lane)
    elseif tonumber(due) <= now and #lanes < 64 then
      lanes[#lanes + 1] = lane
    end
  end
end
local keys, groups = {}, {}
for i, lane in ipairs(lanes) do
  keys[i] = laneKey(lane)
  groups[i] = groupOf(keys[i])
end
local active = #lanes > 0 and redis.call('HMGET', KEYS[2], unpack(groups)) or {}
local holders = #lanes > 0 and redis.call('HMGET', KEYS[6], unpack(lanes)) or {}
local tried = redis.call('EXISTS', KEYS[7]) == 1
local claims, dues = {}, {}
for i, lane in ipairs(lanes) do
  if taken >= room then
    full = true
    break
  end
  local held = holders[i]
  if not active[i] then
    if held then
      redis.call('HDEL', KEYS[6], lane)
      free = free + 1
    end
    if groups[i] == lane then
      redis.call('ZREM', KEYS[5], lane)
    else
      redis.call('ZADD', KEYS[5], string.format('%.0f', now + 60000), lane)
    end
  else
    local ref = headOf(KEYS[4], lane)
    if not ref then
      redis.call('ZREM', KEYS[5], lane)
      if held then
        redis.call('HDEL', KEYS[6], lane)
        free = free + 1
      end
    elseif held or free > 0 then
      local entry = entryOf(keys[i], ref)
      local n, lapses, due, failed = tries(tried and redis.call('HGET', KEYS[7], entry))
      if held then
        lapses = lapses + 1
        redis.call('HSET', KEYS[7], entry, n .. ' ' .. lapses .. ' ' .. string.format('%.0f', due) .. failed)
      else
        free = free - 1
      end
      claims[#claims + 1] = lane
      claims[#claims + 1] = ARGV[3] .. '|' .. ref
      dues[#dues + 1] = lease
      dues[#dues + 1] = lane
      taken = taken + 1
      out[#out + 1] = lane
      out[#out + 1] = ref
      out[#out + 1] = n
      out[#out + 1] = lapses
    else
      full = true
      break
    end
  end
end
if taken > 0 then
  redis.call('HSET', KEYS[6], unpack(claims))
  redis.call('ZADD', KEYS[5], unpack(dues))
end
if not full and #lanes == 64 then out[4] = 1 end
local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
if first[2] then out[3] = first[2] end
return out
