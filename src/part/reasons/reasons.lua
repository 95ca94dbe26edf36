-- Counts the reasons why a stream's events were not received by subscriptions. This is done for each UTC hour (in
-- hours since 1970). The `why` field of P:meta contains the newest hour, in the format `<hour> <without a group key>
-- <not activated> <skipped> <expired>`. At the beginning of the next hour, these counts are moved to P:reasons: hour →
-- the four counts. Without a group key is the number of events. All others are the number of events times the number of
-- subscriptions. The `live` field of P:meta contains the number of rows that are open and not behind. If a subscription
-- is behind, it is counted when it catches up.

-- The counts of a single call. `unrouted` is the number of events that were not received by any subscription, and will
-- not be received by a subscription that is catching up.
local missed = { keyless = 0, notActivated = 0, skipped = 0, expired = 0, unrouted = 0 }

-- Adds the counts of this call. It returns the new text of `why`. If there is nothing to add, this is nil. If the clock
-- is behind, the counts are added to the newest hour.
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
