-- Chooses the slots to move. The chosen slots are at the same position, which is the closest one to the tail. If many
-- slots are behind or paused, it takes long to find them. For this reason, the `cohort` field of P:meta contains up to
-- 512 of the slots that are behind, starting with those that are closest to the tail. If no others are behind, it ends
-- with `-`. Slots that are no longer behind may be left in it. If the gate opens a slot that is behind, it removes the
-- field, unless this slot is the only one.

-- The rest of the field, behind the slots that are moved.
local after = ''

-- Returns the first slots of the field that can still be moved together.
local function keptCohort()
  local kept, slots = meta.cohort or '', {}
  for at = 1, #kept - 7, 8 do slots[#slots + 1] = string.sub(kept, at, at + 7) end
  if #slots == 0 then return nil end
  local refs, at = redis.call('HMGET', KEY_POSITIONS, unpack(slots)), 1
  while slots[at] do
    local ref, together, open = refs[at], {}, {}
    while slots[at] and refs[at] == ref do
      together[#together + 1] = slots[at]
      at = at + 1
    end
    if ref then readSlots(together) end
    for _, slot in ipairs(together) do
      if ref and routeOf[slot] == OPEN then open[#open + 1] = slot end
    end
    if #open > 0 then
      position, after = ref, string.sub(kept, 8 * at - 7)
      return open
    end
  end
  return nil
end

-- Returns the slots that are closest to the tail.
local function closestCohort()
  local slots, refOf, at, refs, count = {}, {}, {}, {}, 0
  local all = redis.call('HGETALL', KEY_POSITIONS)
  for i = 1, #all, 2 do slots[#slots + 1], refOf[all[i]] = all[i], all[i + 1] end
  local rows = {}
  readFields(KEY_SUBS, slots, rows)
  for slot, ref in pairs(refOf) do
    if rows[slot] and string.byte(rows[slot]) == OPEN then
      if not at[ref] then at[ref], refs[#refs + 1] = {}, ref end
      table.insert(at[ref], slot)
      count = count + 1
    end
  end
  table.sort(refs)
  local near, others = {}, {}
  for i = #refs, 1, -1 do
    for _, slot in ipairs(at[refs[i]]) do
      if #near + #others == REFERENCES then break end
      table.insert(i == #refs and near or others, slot)
    end
  end
  position, after = refs[#refs], table.concat(others) .. (count > REFERENCES and '' or '-')
  if count == 0 then return nil end
  readSlots(near)
  return near
end

local function chooseCohort()
  members = keptCohort()
  if not members and string.byte(meta.cohort or '', -1) == 45 then
    after = '-'
  else
    members = members or closestCohort()
  end
  others = after ~= '-'
  if not members then return false end
  cohort = {}
  for _, slot in ipairs(members) do cohort[slot] = true end
  return true
end

-- Writes the field. `slots`: the slots that were moved and are still behind.
local function keepCohort(slots)
  local text = slots .. after
  -- If there are no positions, nothing needs to be read.
  if text == '-' and redis.call('EXISTS', KEY_POSITIONS) == 0 then text = '' end
  if text == (meta.cohort or '') then return end
  if text == '' then redis.call('HDEL', KEY_META, 'cohort') else redis.call('HSET', KEY_META, 'cohort', text) end
end
