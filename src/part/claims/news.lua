-- The delivery status of a slot. It is used in the status of its subscription. It is stored after the counters of the
-- slot (lanes/counts.lua). The status does not exist before the first exchange. It is written when it has changed. It
-- is a single text that does not contain any spaces:
--   class, since, dead, backlog
--   class    letter of the result of the last attempt (completing.lua), or - before the first one
--   since    time of the first attempt in a row with this result, ms in 11 hex characters
--   dead     1 while there are dead letters; else 0
--   backlog  digits of the number of events that wait for an attempt: 0, 1 (1 to 9), 2 (10 to 99) ...
-- `noteDeliveries` updates it for all slots whose counters were changed by this call. It returns the slots that have
-- changed as (slot, before, |, now)*, separated by line ends. For the first dead letter in an hour, both values can be
-- the same.
local attemptOf, deathsOf = {}, {}

local function noteDeath(slot, ref)
  local refs = deathsOf[slot] or {}
  deathsOf[slot] = refs
  refs[#refs + 1] = ref
end

-- Writes the dead letters of this slot. Returns true if they are the first dead letters in a new hour.
local function writeDeaths(slot, refs)
  local text = redis.call('HGET', KEY_DEAD_LETTERS, slot) or ''
  local ms, first, youngest = string.match(text, '^(%d+) (%x+) (%x+)$')
  local HOUR_MS = 3600000
  local isNew = not ms or now - tonumber(ms) >= HOUR_MS
  if isNew then ms, first = string.format('%.0f', now), refs[1] end
  for _, ref in ipairs(refs) do
    if not youngest or ref > youngest then youngest = ref end
  end
  redis.call('HSET', KEY_DEAD_LETTERS, slot, ms .. ' ' .. first .. ' ' .. youngest)
  return isNew
end

local function noteDeliveries()
  local news, NOTHING = {}, ' -' .. string.rep('0', 13)
  for slot in pairs(changedCounts) do
    if routeOf[slot] then
      local ends = endsOf(slot)
      local before = ends.note == '' and NOTHING or ends.note
      local class = string.sub(before, 1, 13)
      local ended = attemptOf[slot]
      if ended and ended ~= string.sub(before, 2, 2) then class = ' ' .. ended .. string.format('%011x', now) end
      local waits = routedOf[slot] + ends.r - ends.d - ends.x - ends.e - ends.s - flightOf[slot]
      local digits = waits > 0 and #string.format('%.0f', waits) or 0
      ends.note = class .. (ends.x > 0 and '1' or '0') .. digits
      local isNew = deathsOf[slot] and writeDeaths(slot, deathsOf[slot])
      if isNew or ends.note ~= before then
        news[#news + 1] = slot .. string.sub(before, 2) .. '|' .. string.sub(ends.note, 2)
      end
    end
  end
  return table.concat(news, '\n')
end
