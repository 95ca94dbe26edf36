-- Claims at most `room` due lanes, those first that have been due longest.
-- Returns the word; if it is OK also the subscription's cfgv, more (1: lanes may have been left out), and the claims,
-- flat.
-- A lane whose activation is gone is parked (the activation un-parks it); without order, or of a replay, it is looked
-- at again in 60 s.
-- A claim whose lease passed is claimed anew and counted as a lapse. At the cap only such lanes are looked for: behind
-- older lanes that wait for room they would never be seen, and a dead dispatcher's claims would hold the cap for ever.
-- Lanes that one call looks at.
local MOST = 64

-- At most `most` lanes whose claims have lapsed; a claim of a lane that is not there any more is dropped.
local function lapsedLanes(most)
  local held = redis.call('HKEYS', KEYS[6])
  local lanes = {}
  for i, due in ipairs(#held > 0 and redis.call('ZMSCORE', KEYS[5], unpack(held)) or {}) do
    if not due then
      redis.call('HDEL', KEYS[6], held[i])
    elseif tonumber(due) <= tonumber(ARGV[1]) and #lanes < most then
      lanes[#lanes + 1] = held[i]
    end
  end
  return lanes
end

local function claim(room)
  if redis.call('HGET', KEYS[1], 'ready') ~= '1' then return 'CLOSED' end
  local s = redis.call('HMGET', KEYS[3], 'send', 'cap', 'cfgv', 'inc')
  if not s[1] or not isOf(s[4], KEYS[4]) then return 'GONE' end
  if s[1] ~= 'open' or redis.call('HGET', KEYS[1], 'state') ~= 'active' then return 'PAUSED' end
  local now = tonumber(ARGV[1])
  local free = tonumber(s[2]) - redis.call('HLEN', KEYS[6])
  local lease = string.format('%.0f', now + tonumber(ARGV[4]))
  local most, lanes = math.min(MOST, room), nil
  if free > 0 then
    most = math.min(most, free)
    lanes = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', ARGV[1], 'LIMIT', 0, most)
  else
    lanes = lapsedLanes(most)
  end
  if #lanes == 0 then return 'OK', s[3], 0, {} end
  local keys, groups = {}, {}
  for i, lane in ipairs(lanes) do
    keys[i] = laneKey(lane)
    groups[i] = groupOf(keys[i])
  end
  local active = redis.call('HMGET', KEYS[2], unpack(groups))
  local holders = redis.call('HMGET', KEYS[6], unpack(lanes))
  local tried = redis.call('EXISTS', KEYS[7]) == 1
  local out, claims, dues, taken = {}, {}, {}, 0
  for i, lane in ipairs(lanes) do
    local held = holders[i]
    -- The group key '' is that of test events, which pass no gate.
    if not active[i] and groups[i] ~= '' then
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
      local ref, behind = headOf(KEYS[4], lane)
      if not ref then
        redis.call('ZREM', KEYS[5], lane)
        if held then
          redis.call('HDEL', KEYS[6], lane)
          free = free + 1
        end
      elseif held or free > 0 then
        local entry = (tried or held) and entryOf(keys[i], ref)
        local n, lapses, due, failed = tries(tried and redis.call('HGET', KEYS[7], entry))
        if held then
          lapses = lapses + 1
          redis.call('HSET', KEYS[7], entry, n .. ' ' .. lapses .. ' ' .. string.format('%.0f', due) .. failed)
        else
          free = free - 1
        end
        claims[2 * taken + 1] = lane
        claims[2 * taken + 2] = (behind and '+' or '') .. ARGV[3] .. '|' .. ref
        dues[2 * taken + 1] = lease
        dues[2 * taken + 2] = lane
        out[4 * taken + 1] = lane
        out[4 * taken + 2] = ref
        -- A number costs ten times as much to join as a text.
        out[4 * taken + 3] = n == 0 and '0' or n
        out[4 * taken + 4] = lapses == 0 and '0' or lapses
        taken = taken + 1
      end
    end
  end
  if taken > 0 then
    redis.call('HSET', KEYS[6], unpack(claims))
    redis.call('ZADD', KEYS[5], unpack(dues))
  end
  return 'OK', s[3], #lanes == most and taken < room and free > 0 and 1 or 0, out
end
