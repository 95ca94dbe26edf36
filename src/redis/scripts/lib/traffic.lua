-- What a part has counted for the producer series, for each minute, until it is folded into the slot of the
-- tenant. This is a single text in the format `<ms of the first count>(;<minute> <a> <b> <c>)*`, in which the minutes
-- (since 1970) are in ascending order. If a clock is behind, it will count in the newest minute that exists. This means
-- that anything before it will never change, so it can be folded and removed. The time at which it was started can be
-- used to distinguish a text that was lost from a newer one.
local MOST = 32768
local function counted(text, now, a, b, c)
  local minute = math.floor(now / 60000)
  if text then
    local before, newest, x, y, z = string.match(text, '^(.*;)(%d+) (%d+) (%d+) (%d+)$')
    if tonumber(newest) >= minute then
      return before .. newest .. string.format(' %d %d %d', x + a, y + b, z + c)
    end
    -- If it was not possible to fold it for about a day, the oldest half is removed.
    if #text > MOST then text = string.match(text, '^[^;]*') .. string.match(text, ';.*$', math.floor(#text / 2)) end
  else
    text = string.format('%.0f', now)
  end
  return text .. string.format(';%.0f %.0f %.0f %.0f', minute, a, b, c)
end
