#!lua flags=allow-oom
-- Ends claimed attempts of one subscription.
-- KEYS  1 I:s:<sub>  2 X:pend  3 X:due  4 X:cl  5 X:try  6 X:fin  7 X:body  8.. X:rec:<6h>
-- ARGV  1 nowMs  2 ttlMs of a record bucket  3 number of items
--       4.. (lane, ref, token, outcome, due ms, index of the record's key, note)*, then (number of an item, body)*
--       outcome: delivered, dead, expired (final), failed (again at `due`), released (again at once, no attempt counted)
--       note: the record of a final one; of a failed one its attempt, `ms,status or reason,latency ms`
--       body: what a failed or dead one was answered with
-- Returns {next due ms or '', one word per item*}: OK, GONE (not open any more), STALE (another claim holds the lane).
-- `delivered` is taken while the reference is open, whatever the token: the partner has it.
-- Attempts that failed are kept with the open reference, the last 20, and move into its record.
--@include generation
--@include lanes
--@include failures
local now, counts, out = tonumber(ARGV[1]), {}, { '' }
local final = { delivered = true, dead = true, expired = true }
local last = 3 + 7 * tonumber(ARGV[3])
local lanes, at, keys, members = {}, {}, {}, {}
for i = 4, last, 7 do
  local lane = ARGV[i]
  if not at[lane] then
    lanes[#lanes + 1] = lane
    at[lane] = #lanes
    keys[lane] = laneKey(lane)
  end
  members[#members + 1] = keys[lane] .. NUL .. ARGV[i + 1]
end
if #lanes == 0 then return out end
local holders = redis.call('HMGET', KEYS[4], unpack(lanes))
local scores = redis.call('ZMSCORE', KEYS[2], unpack(members))
local tried = redis.call('EXISTS', KEYS[5]) == 1
local open, records, bodies = {}, {}, {}
for k, member in ipairs(members) do open[member] = scores[k] end
for i = last + 1, #ARGV, 2 do bodies[4 + 7 * tonumber(ARGV[i])] = ARGV[i + 1] end
-- What becomes of the lanes is written for all together: lane → when it is due, or true for its head's turn.
local moves, freed, ended = {}, {}, {}
for k, member in ipairs(members) do
  local i = 7 * k - 3
  local lane, ref, outcome = ARGV[i], ARGV[i + 1], ARGV[i + 3]
  local held = holders[at[lane]]
  local mine = held == ARGV[i + 2] .. '|' .. ref
  local entry = entryOf(keys[lane], ref)
  local word = 'OK'
  if not open[member] then
    word = 'GONE'
  elseif not mine and outcome ~= 'delivered' then
    word = 'STALE'
  elseif final[outcome] then
    open[member] = false
    ended[#ended + 1] = member
    local index = tonumber(ARGV[i + 5])
    local record = records[index] or {}
    records[index] = record
    local text = tried and redis.call('HGET', KEYS[5], entry)
    local n, _, _, failed = tries(text)
    record[#record + 1] = entry
    record[#record + 1] = ARGV[i + 6] .. failed
    if outcome ~= 'delivered' then redis.call('ZADD', KEYS[6], 0, entry) end
    if text then redis.call('HDEL', KEYS[5], entry) end
    if bodies[i] then keepFailure(KEYS[7], entry, n + 1, bodies[i]) end
    counts[outcome] = (counts[outcome] or 0) + 1
    if not held or string.sub(held, -15) == ref then
      if held then
        freed[#freed + 1] = lane
        holders[at[lane]] = false
      end
      moves[lane] = true
    end
  else
    local due = ARGV[1]
    if outcome == 'failed' then
      local n, lapses, _, failed = tries(tried and redis.call('HGET', KEYS[5], entry))
      n = n + 1
      due = ARGV[i + 4]
      if ARGV[i + 6] ~= '' then
        failed = failed .. ' ' .. ARGV[i + 6]
        if select(2, string.gsub(failed, ' ', '')) > 20 then failed = string.gsub(failed, '^ [^ ]+', '') end
      end
      redis.call('HSET', KEYS[5], entry, n .. ' ' .. lapses .. ' ' .. due .. failed)
      tried = true
      if bodies[i] then keepFailure(KEYS[7], entry, n, bodies[i]) end
    end
    moves[lane] = due
    freed[#freed + 1] = lane
    holders[at[lane]] = false
  end
  out[#out + 1] = word
end
if #ended > 0 then redis.call('ZREM', KEYS[2], unpack(ended)) end
if #freed > 0 then redis.call('HDEL', KEYS[4], unpack(freed)) end
local dues, emptied = {}, {}
for _, lane in ipairs(lanes) do
  local due = moves[lane]
  if due == true then due = headOf(KEYS[2], lane) and ARGV[1] end
  if due then
    dues[#dues + 1] = due
    dues[#dues + 1] = lane
  elseif moves[lane] then
    emptied[#emptied + 1] = lane
  end
end
if #dues > 0 then redis.call('ZADD', KEYS[3], unpack(dues)) end
if #emptied > 0 then redis.call('ZREM', KEYS[3], unpack(emptied)) end
for index, fields in pairs(records) do
  redis.call('HSET', KEYS[index], unpack(fields))
  if redis.call('PTTL', KEYS[index]) < 0 then redis.call('PEXPIRE', KEYS[index], ARGV[2]) end
end
-- A subscription that is gone is not made again by its counters, nor do they go to one that was made since.
if next(counts) and not isOf(redis.call('HGET', KEYS[1], 'inc'), KEYS[2]) then counts = {} end
for outcome, n in pairs(counts) do redis.call('HINCRBY', KEYS[1], 'n:' .. outcome, n) end
local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if first[2] then out[1] = first[2] end
return out
