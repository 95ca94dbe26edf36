-- Claims at most `room` due lanes: first attempts before retries, of each those first that have been due longest.
-- Returns the word; if it is OK also the subscription's cfgv, more (1: lanes may have been left out), the claims, flat,
-- and when something may be claimed again at the earliest, ms, where that is not at once.
-- A lane whose activation is gone is parked (the activation un-parks it); without order, or of a replay, it is looked
-- at again in 60 s.
-- A claim whose lease passed is claimed anew and counted as a lapse. At the cap only such lanes are looked for: behind
-- older lanes that wait for room they would never be seen, and a dead dispatcher's claims would hold the cap for ever.
-- Lanes that one call looks at.
local MOST = 64
-- No lease ends later, and no lane is looked at again later, except retries: what does was written before the clock was
-- set back.
local FURTHEST_MS = 65000

-- Brings back what is due further ahead than that. A claim may be at work still: it keeps a whole lease from now on.
local function bringBack(lease)
  local from = string.format('(%.0f', tonumber(ARGV[1]) + FURTHEST_MS)
  local till = string.format('(%.0f', RETRIES)
  for _, lane in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], from, till, 'LIMIT', 0, MOST)) do
    redis.call('ZADD', KEYS[5], redis.call('HEXISTS', KEYS[6], lane) == 1 and lease or ARGV[1], lane)
  end
end

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

-- At most `most` due lanes, where there may be retries among them. They leave a quarter of the cap to first attempts: an
-- endpoint that hangs would fill it with them. Where there are more first attempts than may go, an eighth of those that
-- go are retries all the same.
local function dueLanes(most, free, cap)
  local now = tonumber(ARGV[1])
  local lanes = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', ARGV[1], 'LIMIT', 0, most + 1)
  local rest = #lanes > most and math.floor((most + now % 8) / 8) or most - #lanes
  rest = math.min(rest, free - math.floor(cap / 4))
  local retries = rest > 0 and redis.call('ZRANGEBYSCORE', KEYS[5], RETRIES, RETRIES + now, 'LIMIT', 0, rest) or {}
  while #lanes > most - #retries do lanes[#lanes] = nil end
  for _, lane in ipairs(retries) do lanes[#lanes + 1] = lane end
  return lanes
end

local function claim(room)
  if meta[1] ~= '1' then return 'CLOSED' end
  if not s[3] or not isOf(s[1], KEYS[4]) then return 'GONE' end
  if s[3] ~= 'open' or meta[2] ~= 'active' then return 'PAUSED' end
  local now = tonumber(ARGV[1])
  local most, notBefore = math.min(MOST, room), nil
  local endpoint = s[2] and endpointHealth(KEYS[3], now)
  local health = endpoint and endpoint.read(s[2])
  if health then
    if health.disabled then
      if health.enabled then return 'OK', s[5], 0, {}, health.enabled end
      return 'DISABLED'
    end
    if health.pause > 0 then
      if now < health.next then return 'OK', s[5], 0, {}, health.next end
      most = 1
    end
  end
  local cap, perSecond, pace, empty, full = tonumber(s[4]), nil, nil, nil, nil
  if not cap then
    cap, perSecond, pace, empty, full = paceOf(s[4], KEYS[3], now)
    if pace < 1 then return 'OK', s[5], 0, {}, math.ceil(empty + full) end
    most = math.min(most, pace)
  end
  local free = cap - redis.call('HLEN', KEYS[6])
  local lease = string.format('%.0f', now + tonumber(ARGV[4]))
  local lanes
  if free > 0 then
    most = math.min(most, free)
    lanes = hasTries() and dueLanes(most, free, cap)
      or redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', ARGV[1], 'LIMIT', 0, most)
  else
    lanes = lapsedLanes(most)
  end
  if #lanes < most then bringBack(lease) end
  if #lanes == 0 then return 'OK', s[5], 0, {} end
  local keys, groups = {}, {}
  for i, lane in ipairs(lanes) do
    keys[i] = laneKey(lane)
    groups[i] = groupOf(keys[i])
  end
  local active = redis.call('HMGET', KEYS[2], unpack(groups))
  local holders = redis.call('HMGET', KEYS[6], unpack(lanes))
  local tried = hasTries()
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
    if health and health.pause > 0 then
      endpoint.probe(health, ARGV[3], tonumber(lease))
      notBefore = health.next
    end
    if pace then
      empty = empty + taken * 1000 / perSecond
      redis.call('HSET', KEYS[3], 'paced', string.format('%.3f', empty))
      if pace == taken then notBefore = math.max(notBefore or 0, math.ceil(empty + full)) end
    end
  end
  local more = not notBefore and #lanes == most and taken < room and free > 0
  return 'OK', s[5], more and 1 or 0, out, notBefore
end
