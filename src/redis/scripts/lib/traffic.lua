-- What a part counted for the producer's series, minute by minute, until it is folded into the tenant's slot: one text,
-- `<ms of the first count>(;<minute> <a> <b> <c>)*`, its minutes ascending (minutes since 1970).
-- A clock that is behind counts in the newest minute there is: what lies before it never changes, so that it may be
-- folded and removed. When it was begun tells a text that was lost from its successor.
local MOST = 32768
local function counted(text, now, a, b, c)
  local minute = math.floor(now / 60000)
  if text then
    local before, newest, x, y, z = string.match(text, '^(.*;)(%d+) (%d+) (%d+) (%d+)$')
    if tonumber(newest) >= minute then
      return before .. newest .. string.format(' %.0f %.0f %.0f', x + a, y + b, z + c)
    end
    -- Nobody could fold it for about a day: the oldest half is given up.
    if #text > MOST then text = string.match(text, '^[^;]*') .. string.match(text, ';.*$', math.floor(#text / 2)) end
  else
    text = string.format('%.0f', now)
  end
  return text .. string.format(';%.0f %.0f %.0f %.0f', minute, a, b, c)
end
