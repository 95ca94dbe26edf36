-- How the deliveries of a subscription go, as its status shows it: the field `delivery` of I:s:<sub>, written when it
-- changes, absent before the first change. One text:
--   class since dead backlog
--   class    how the last attempt ended, or - before the first one
--   since    when attempts began to end so, ms
--   dead     1 while there are dead letters, test events aside; else 0
--   backlog  digits of the number of open references that no attempt holds: 0, 1 (1 to 9), 2 (10 to 99) ...
-- And the field `dead`, `ms ref ref`: when the first dead letter of the last hour that had one came, its ref, and the
-- youngest ref of all dead letters.
-- `class` is '' where no attempt ended. `s` has `delivery`, `n:dead` and `testsDead` as they were before.
-- Returns '', or `before|now` where the subscription's status has something new to show.
local NOTHING = '- 0 0 0'
local function noteDelivery(class, deaths, s)
  local before = s[6] or NOTHING
  local had, since = string.match(before, '^(%S+) (%d+)')
  if class == '' then class = had end
  if class ~= had then since = ARGV[1] end
  local dead = tonumber(s[7] or '0') - tonumber(s[8] or '0') + #deaths
  local waiting = redis.call('ZCARD', KEYS[4]) - redis.call('HLEN', KEYS[6])
  local digits = waiting > 0 and #string.format('%.0f', waiting) or 0
  local now = class .. ' ' .. since .. (dead > 0 and ' 1 ' or ' 0 ') .. digits
  local news = now ~= before
  if news then redis.call('HSET', KEYS[3], 'delivery', now) end
  if #deaths > 0 then
    local ms, first, youngest = string.match(redis.call('HGET', KEYS[3], 'dead') or '', '^(%d+) (%S+) (%S+)$')
    if not ms or tonumber(ARGV[1]) - tonumber(ms) >= 3600000 then
      ms, first, news = ARGV[1], deaths[1], true
    end
    for _, ref in ipairs(deaths) do
      if not youngest or ref > youngest then youngest = ref end
    end
    redis.call('HSET', KEYS[3], 'dead', ms .. ' ' .. first .. ' ' .. youngest)
  end
  return news and (before .. '|' .. now) or ''
end
