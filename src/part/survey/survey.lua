#!lua flags=no-writes
-- Returns the work that needs to be done for a part, and whether there is a dispatcher doing it. This reads 8 of the
-- slots that are waiting, and the rows of about 512 slots that are behind.
--@keys meta log subs positions claims pending waiting turns retries ready
--@args gen
-- Returns {OK, now, number of open deliveries, 1 if some may be sent now or later, time since which no dispatcher sends
--         them (ms, 0 if unknown) or '', 1 if there are events, position from which to continue routing or '', the
--         oldest event if retention should have removed it or '', time since then (ms)}, or GONE. If a part is waiting
--         for tokens, it does not have a position, because dispatchers can't continue to route its events.
--@include ../lanes/clock.lua
local SLOTS, CLASSES, PAGE = 8, 2, 512
local LONGEST_RETENTION_MS = 2592000000
-- Events are only removed once a minute, all at the same time.
local REMOVED_WITHIN_MS = 60000
local meta = redis.call('HMGET', KEY_META, 'gen', 'hold', 'pos', 'slice', 'retentionMs', 'moved')
if meta[1] ~= ARG_GEN then return { 'GONE' } end

local claimed = redis.call('HLEN', KEY_CLAIMS)
local turns = redis.call('ZRANGE', KEY_TURNS, 0, SLOTS - 1)
local retry = tonumber(redis.call('ZRANGE', KEY_RETRIES, 0, 0, 'WITHSCORES')[2])
local isWaiting = claimed > 0 or #turns > 0 or retry ~= nil

local function oldestClaimable()
  local oldest = retry and retry <= now and retry or nil
  for _, slot in ipairs(turns) do
    for class = 0, CLASSES do
      local from, till = '[' .. slot .. class, '(' .. slot .. (class + 1)
      local member = redis.call('ZRANGEBYLEX', KEY_WAITING, from, till, 'LIMIT', 0, 1)[1]
      local due = member and tonumber(string.sub(member, 10, 20), 16)
      if due and (not oldest or due < oldest) then oldest = due end
    end
  end
  return oldest
end

-- If there is no recent heartbeat from a dispatcher, it has left or is not running any more. The claims that it holds
-- will not be sent.
local function idleSince()
  local last = 0
  for _, text in ipairs(redis.call('HVALS', KEY_READY)) do
    last = math.max(last, tonumber(string.match(text, '^%d+')))
  end
  if last > now then return '' end
  local oldest = oldestClaimable()
  if not oldest and claimed == 0 then return '' end
  return string.format('%.0f', math.max(last, oldest or 0))
end

local function isAnyBehind()
  local page = redis.call('HSCAN', KEY_POSITIONS, '0', 'COUNT', PAGE)[2]
  if #page == 0 then return false end
  local slots = {}
  for i = 1, #page, 2 do slots[#slots + 1] = page[i] end
  for _, row in ipairs(redis.call('HMGET', KEY_SUBS, unpack(slots))) do
    if row and string.sub(row, 1, 1) == 'o' then return true end
  end
  return false
end

local function routingStandsAt()
  if meta[2] == 'tokens' then return '' end
  if meta[2] then return meta[2] .. ' ' .. (meta[3] or '') .. ' ' .. (meta[4] or '') end
  return isAnyBehind() and 'moved ' .. (meta[6] or '') or ''
end

local first = redis.call('XRANGE', KEY_LOG, '-', '+', 'COUNT', 1)[1]
local expired, expiredMs = '', 0
if first then
  local dueMs = tonumber(string.match(first[1], '^%d+')) + tonumber(meta[5] or LONGEST_RETENTION_MS) + REMOVED_WITHIN_MS
  if dueMs <= now then expired, expiredMs = first[1], dueMs end
end
return {
  'OK', now, redis.call('ZCARD', KEY_PENDING) + claimed, isWaiting and 1 or 0, isWaiting and idleSince() or '',
  first and 1 or 0, routingStandsAt(), expired, expiredMs,
}
