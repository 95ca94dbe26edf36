-- Why subscriptions of a stream did not get its events: counts of UTC hours (hours since 1970). Field `why` of P:meta has the
-- newest hour, as `<hour> <without a group key> <not activated> <skipped> <expired>`. When another one begins, what was counted
-- goes to P:reasons: hour → the four counts. Those without a group key are events; the others are events times subscriptions.
-- Beside it P:meta has `live`: how many rows are open and not behind. Who is behind is counted when it catches up.

-- What a call counts; `unrouted`: events that went to nobody, and that nobody who is behind gets later.
local missed = { keyless = 0, notActivated = 0, skipped = 0, expired = 0, unrouted = 0 }

-- Adds it. Returns the new text of `why`, or nil where there is nothing. A clock that is behind counts in the newest hour.
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
