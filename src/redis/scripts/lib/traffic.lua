-- The counts of a part for the producer series, for each minute, until they have been folded into the tenant's slot.
-- This is a single text in the format `<ms of the first count>(;<minute> <a> <b> <c>)*`, with minutes (since 1970) in
-- ascending order. If a clock is behind, it counts in the newest existing minute. As a result, earlier minutes never
-- change, so they can be folded and removed. The start time is used to distinguish a lost text from a newer text.
local MOST = 32768
local function counted(text, now, a, b, c)
  local minute = math.floor(now / 60000)
  if text then
    local before, newest, x, y, z = string.match(text, '^(.*;)(%d+) (%d+) (%d+) (%d+)$')
    if tonumber(newest) >= minute then
      return before .. newest .. string.format(' %d %d %d', x + a, y + b, z + c)
    end
    -- If it could not be folded for about a day, the oldest half is removed.
    if #text > MOST then text = string.match(text, '^[^;]*') .. string.match(text, ';.*$', math.floor(#text / 2)) end
  else
    text = string.format('%.0f', now)
  end
  return text .. string.format(';%.0f %.0f %.0f %.0f', minute, a, b, c)
end
