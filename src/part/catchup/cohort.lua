-- Chooses the slots to move. The chosen slots are at the same position, which is the closest one to the tail. If many
-- slots are behind or paused, it takes long to find them. For this reason, they are kept in the `cohort` field of
-- P:meta until they have reached the tail, or until the gate opens a slot that is behind.

-- Returns the slots that were moved by the last call, if they can still be moved together.
local function keptCohort()
  local slots = {}
  for at = 1, #(meta.cohort or ''), 8 do slots[#slots + 1] = string.sub(meta.cohort, at, at + 7) end
  if #slots == 0 then return nil end
  readSlots(slots)
  local refs = redis.call('HMGET', KEY_POSITIONS, unpack(slots))
  for i, slot in ipairs(slots) do
    if not refs[1] or refs[i] ~= refs[1] or routeOf[slot] ~= OPEN then return nil end
  end
  position, others = refs[1], redis.call('HLEN', KEY_POSITIONS) > #slots
  return slots
end

-- Returns the slots that are closest to the tail.
local function closestCohort()
  local slots, refOf, at = {}, {}, {}
  local all = redis.call('HGETALL', KEY_POSITIONS)
  for i = 1, #all, 2 do slots[#slots + 1], refOf[all[i]] = all[i], all[i + 1] end
  local rows = {}
  readFields(KEY_SUBS, slots, rows)
  for slot, ref in pairs(refOf) do
    if rows[slot] and string.byte(rows[slot]) == OPEN then
      at[ref] = at[ref] or {}
      table.insert(at[ref], slot)
      if not position or ref > position then position = ref end
    end
  end
  if not position then return nil end
  others = next(at, next(at)) ~= nil
  local found = at[position]
  while #found > REFERENCES do
    others = true
    table.remove(found)
  end
  readSlots(found)
  return found
end

local function chooseCohort()
  members = keptCohort() or closestCohort()
  if not members then return false end
  cohort = {}
  for _, slot in ipairs(members) do cohort[slot] = true end
  return true
end
