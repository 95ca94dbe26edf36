-- Ends `count` claimed attempts, seven arguments each from `at`:
--   lane, ref, token, outcome, due ms, index of the record's key, note
--   outcome: delivered, dead, expired (final), failed (again at `due`), gone (its endpoint answered 410, which disables
--   it: goes first when it is enabled again), released (again at once, no attempt counted)
--   note: the record of a final one; of a failed or gone one its attempt, `ms,status or reason,latency ms`
-- After them (number of an item, a plus if the answer was longer, or '', what a failed, gone or dead one was answered
-- with)*.
-- `delivered` is taken while the reference is open, whatever the token: the partner has it.
-- Attempts that failed are kept with the open reference, the last 20, and move into its record.
-- Returns a letter per item, whether the endpoint was disabled by this, and the refs of new dead letters, test events
-- aside.
local FINAL = { delivered = true, dead = true, expired = true }
local function complete(at, count)
  if count == 0 then return '', false, {} end
  local last = at + 7 * count - 1
  local lanes, number, keys, members = {}, {}, {}, {}
  for i = at, last, 7 do
    local lane = ARGV[i]
    if not number[lane] then
      lanes[#lanes + 1] = lane
      number[lane] = #lanes
      keys[lane] = laneKey(lane)
    end
    members[#members + 1] = keys[lane] .. NUL .. ARGV[i + 1]
  end
  local holders = redis.call('HMGET', KEYS[6], unpack(lanes))
  local scores = redis.call('ZMSCORE', KEYS[4], unpack(members))
  local tried = hasTries()
  local open, records, bodies, counts, letters = {}, {}, {}, {}, {}
  for k, member in ipairs(members) do open[member] = scores[k] end
  for i = last + 1, #ARGV, 3 do bodies[at + 7 * tonumber(ARGV[i])] = i end
  -- What becomes of the lanes is written for all together: lane → when it is due, or true: now, if it has a head.
  local moves, freed, ended = {}, {}, {}
  local deaths, testsDead = {}, 0
  -- Attempts that failed, and their tokens; claims that ended without an attempt that counts.
  local failures, gone, released, tokens = 0, false, false, nil
  -- Of first deliveries, for the producer's series.
  local delivered, missed = 0, 0
  for k, member in ipairs(members) do
    local i = at + 7 * (k - 1)
    local lane, ref, outcome = ARGV[i], ARGV[i + 1], ARGV[i + 3]
    local held = holders[number[lane]]
    local token = ARGV[i + 2] .. '|' .. ref
    local mine = held == token or held == '+' .. token
    local entry = entryOf(keys[lane], ref)
    local letter = 'o'
    if not open[member] then
      letter = 'g'
      released, tokens = true, tokens or {}
      tokens[ARGV[i + 2]] = true
    elseif not mine and outcome ~= 'delivered' then
      letter = 's'
    elseif FINAL[outcome] then
      open[member] = false
      ended[#ended + 1] = member
      local record = records[ARGV[i + 5]] or {}
      records[ARGV[i + 5]] = record
      local text = tried and redis.call('HGET', KEYS[7], entry)
      local n, _, _, failed = tries(text)
      record[#record + 1] = entry
      record[#record + 1] = ARGV[i + 6] .. failed
      if outcome ~= 'delivered' then redis.call('ZADD', KEYS[8], 0, entry) end
      -- Without a latency it was none: nothing was sent.
      if outcome ~= 'delivered' then
        tokens = tokens or {}
        tokens[ARGV[i + 2]] = true
        if outcome == 'dead' and string.sub(ARGV[i + 6], -2) ~= ' -' then
          failures = failures + 1
          if isFirst(keys[lane]) then missed = missed + 1 end
          -- A test event that was answered with 410 is not sent again.
          gone = gone or string.find(ARGV[i + 6], ' 410 ', 1, true) ~= nil
        else
          released = true
        end
      end
      if outcome == 'dead' then
        if keys[lane] == '' then testsDead = testsDead + 1 else deaths[#deaths + 1] = ref end
      end
      if text then redis.call('HDEL', KEYS[7], entry) end
      if bodies[i] then keepFailure(KEYS[9], entry, n + 1, ARGV[bodies[i] + 1], ARGV[bodies[i] + 2]) end
      counts[outcome] = (counts[outcome] or 0) + 1
      if outcome == 'delivered' and isFirst(keys[lane]) then delivered = delivered + 1 end
      if not held or string.sub(held, -15) == ref then
        if held then
          freed[#freed + 1] = lane
          holders[number[lane]] = false
        end
        -- What was behind may be gone: a lane without a head is found out by whoever claims it.
        moves[lane] = held and string.byte(held) == 43 and ARGV[1] or true
      end
    else
      local due = ARGV[1]
      tokens = tokens or {}
      tokens[ARGV[i + 2]] = true
      if outcome == 'released' then
        released = true
      else
        failures = failures + 1
        if isFirst(keys[lane]) then missed = missed + 1 end
        gone = gone or outcome == 'gone'
        local n, lapses, _, failed = tries(tried and redis.call('HGET', KEYS[7], entry))
        n = n + 1
        due = outcome == 'gone' and '0' or ARGV[i + 4]
        if ARGV[i + 6] ~= '' then
          failed = failed .. ' ' .. ARGV[i + 6]
          if select(2, string.gsub(failed, ' ', '')) > 20 then failed = string.gsub(failed, '^ [^ ]+', '') end
        end
        redis.call('HSET', KEYS[7], entry, n .. ' ' .. lapses .. ' ' .. due .. failed)
        tried, known = true, true
        if bodies[i] then keepFailure(KEYS[9], entry, n, ARGV[bodies[i] + 1], ARGV[bodies[i] + 2]) end
        -- An earlier one may have been opened again meanwhile (`recover`): it is its turn then.
        if headOf(KEYS[4], lane) ~= ref then
          due = true
        elseif outcome == 'failed' then
          due = RETRIES + due
        end
      end
      moves[lane] = due
      freed[#freed + 1] = lane
      holders[number[lane]] = false
    end
    letters[k] = letter
  end
  if #ended > 0 then redis.call('ZREM', KEYS[4], unpack(ended)) end
  if #freed > 0 then redis.call('HDEL', KEYS[6], unpack(freed)) end
  local dues, emptied = {}, {}
  for _, lane in ipairs(lanes) do
    local due = moves[lane]
    if due == true then due = headOf(KEYS[4], lane) and ARGV[1] end
    if due then
      dues[#dues + 1] = due
      dues[#dues + 1] = lane
    elseif moves[lane] then
      emptied[#emptied + 1] = lane
    end
  end
  if #dues > 0 then redis.call('ZADD', KEYS[5], unpack(dues)) end
  if #emptied > 0 then redis.call('ZREM', KEYS[5], unpack(emptied)) end
  for index, fields in pairs(records) do
    local k = tonumber(index)
    redis.call('HSET', KEYS[k], unpack(fields))
    if redis.call('PTTL', KEYS[k]) < 0 then redis.call('PEXPIRE', KEYS[k], ARGV[5]) end
  end
  -- A subscription that is gone is not made again by its counters, nor do they go to one that was made since.
  local disabled = false
  if next(counts) or failures > 0 or released then
    local had = s[2]
    if not isOf(s[1], KEYS[4]) then
      counts, testsDead = {}, 0
    elseif gone or (failures > 0 and not counts.delivered) then
      had = true
      disabled = endpointHealth(KEYS[3], tonumber(ARGV[1])).failed(s[2], failures, gone, tokens)
    elseif had and counts.delivered then
      endpointHealth(KEYS[3], tonumber(ARGV[1])).succeeded(had)
    elseif had and released then
      endpointHealth(KEYS[3], tonumber(ARGV[1])).released(had, tokens)
    end
    -- It may be another now, and claiming asks.
    if had then s[2] = redis.call('HGET', KEYS[3], 'health') end
  end
  for outcome, n in pairs(counts) do redis.call('HINCRBY', KEYS[3], 'n:' .. outcome, n) end
  if testsDead > 0 then redis.call('HINCRBY', KEYS[3], 'testsDead', testsDead) end
  if delivered + missed > 0 then
    local tenant = not meta[3] and redis.call('HGET', KEYS[3], 'tenant') or ''
    -- An integration that is gone is not made again by its counts.
    if meta[2] then
      redis.call('HSET', KEYS[1], 'traffic', counted(meta[3], tonumber(ARGV[1]), tenant, delivered, missed, 0))
    end
  end
  return table.concat(letters), disabled, deaths
end
