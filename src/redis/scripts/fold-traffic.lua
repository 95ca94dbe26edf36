#!lua flags=allow-oom
-- Adds the counts of parts (lib/traffic) to the tenant series. Each count is only added once even if it is reported
-- several times.
-- KEYS  1 T:traf:ring  2 T:traf:<week>  3 T:traf:<week before>  4 T:traf:<week after>
-- ARGV  1 nowMs  2.. (source, text)*; the first letter of a source says what its three counts are
-- Returns OK. The ring: HASH of `m|q|h<slot>` → `<index> <eventsIn> <deliveries> <failures> <notRouted> <bytes>
-- <tokens>`, index = ms / width of the bucket: 61 minutes, 97 quarters, 169 hours, one more than is read so that a
-- reader whose clock is behind finds its oldest. Marks: HASH of source → `<begun> <minute> <a> <b> <c>`, the newest
-- minute of it that was added. A mark is kept for at least a week. Reports after that time are older than the series. A
-- process whose clock was ahead at the end of a week has written the mark to the next week.
local RINGS = { { 'm', 1, 61 }, { 'q', 15, 97 }, { 'h', 60, 169 } }
-- a is what has arrived (events, bytes, tokens). o is what has happened to them (delivered, failed, not routed to
-- anyone).
local COLUMNS = { a = { 1, 5, 6 }, o = { 2, 3, 4 } }
local oldest = math.floor(tonumber(ARGV[1]) / 60000) - 168 * 60
local buckets = {}
local function add(field, index, columns, counts)
  local bucket = buckets[field]
  if not bucket then
    bucket = { 0, 0, 0, 0, 0, 0, 0 }
    local text, k = redis.call('HGET', KEYS[1], field), 0
    for n in string.gmatch(text or '', '%d+') do
      k = k + 1
      bucket[k] = tonumber(n)
    end
    buckets[field] = bucket
  end
  -- A later bucket already uses the place of this one in the ring.
  if bucket[1] > index then return end
  if bucket[1] < index then
    for k = 2, 7 do bucket[k] = 0 end
    bucket[1] = index
  end
  for k = 1, 3 do bucket[columns[k] + 1] = bucket[columns[k] + 1] + counts[k] end
end
for i = 2, #ARGV, 2 do
  local source, text = ARGV[i], ARGV[i + 1]
  local ahead = redis.call('HGET', KEYS[4], source)
  local mark = ahead or redis.call('HGET', KEYS[2], source) or redis.call('HGET', KEYS[3], source) or '0 0 0 0 0'
  local begunBefore, upTo, a, b, c = string.match(mark, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  local begun = string.match(text, '^%d+')
  if tonumber(begunBefore) > tonumber(begun) then
    text = ''
  elseif begunBefore ~= begun then
    upTo, a, b, c = '0', '0', '0', '0'
  end
  local done = tonumber(upTo)
  local newest
  for minute, x, y, z in string.gmatch(text, ';(%d+) (%d+) (%d+) (%d+)') do
    local at = tonumber(minute)
    if at >= done then
      local counts = { tonumber(x), tonumber(y), tonumber(z) }
      newest = begun .. ' ' .. minute .. ' ' .. x .. ' ' .. y .. ' ' .. z
      if at == done then
        -- Reported by a process that has read it before the mark was created, so it has already been included.
        if counts[1] < tonumber(a) or counts[2] < tonumber(b) or counts[3] < tonumber(c) then newest = nil end
        counts = { math.max(0, x - a), math.max(0, y - b), math.max(0, z - c) }
      end
      if at > oldest and counts[1] + counts[2] + counts[3] > 0 then
        for _, ring in ipairs(RINGS) do
          local index = math.floor(at / ring[2])
          add(ring[1] .. index % ring[3], index, COLUMNS[string.sub(source, 1, 1)], counts)
        end
      end
    end
  end
  if newest and newest ~= mark then redis.call('HSET', KEYS[ahead and 4 or 2], source, newest) end
end
for field, bucket in pairs(buckets) do
  local text = {}
  for k = 1, 7 do text[k] = string.format('%.0f', bucket[k]) end
  redis.call('HSET', KEYS[1], field, table.concat(text, ' '))
end
for k = 1, 2 do redis.call('PEXPIRE', KEYS[k], 1382400000) end
return 'OK'
