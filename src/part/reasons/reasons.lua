-- Counts the reasons why subscriptions did not receive the events of a stream, by UTC hour (hours since 1970). Field `why`
-- of P:meta contains the newest hour, as `<hour> <without a group key> <not activated> <skipped> <expired>`. When the next
-- hour begins, these counts are moved to P:reasons: hour → the four counts. Counts without a group key are events, all
-- others are events times subscriptions. Field `live` of P:meta contains the number of open rows that are not behind.
-- Subscriptions that are behind are counted when they catch up.

-- Counts of a call. `unrouted`: events that no subscription received, nor will receive once it has caught up.
local missed = { keyless = 0, notActivated = 0, skipped = 0, expired = 0, unrouted = 0 }

-- Adds the counts. Returns the new text of `why`, or nil if there is nothing to add. If the clock is behind, they are added
-- to the newest hour.
local function countedReasons(why)
  local counts = { missed.keyless, missed.notActivated, missed.skipped, missed.expired }
  if counts[1] + counts[2] + counts[3] + counts[4] == 0 then return nil end
  local hour, kept = math.floor(now / 3600000), 192
  local newest, said = string.match(why or '', '^(%d+) (.*)$')
  if newest and tonumber(newest) < hour then
    local old = {}
    for _, each in ipairs(redis.call('HKEYS', KEY_REASONS)) do
      if tonumber(each) <= hour - kept then old[#old + 1] = each end
    end
    if #old > 0 then redis.call('HDEL', KEY_REASONS, unpack(old)) end
    redis.call('HSET', KEY_REASONS, newest, said)
  elseif newest then
    local i = 0
    for count in string.gmatch(said, '%d+') do
      i = i + 1
      counts[i] = counts[i] + tonumber(count)
    end
    hour = tonumber(newest)
  end
  return string.format('%.0f %.0f %.0f %.0f %.0f', hour, unpack(counts))
end
