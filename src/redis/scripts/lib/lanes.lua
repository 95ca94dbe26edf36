-- A lane is the group key (ordered), or group key .. NUL .. ref (ordering None: each event is its own lane).
-- Open references lie in one ZSET `pend`, score 0, as group key .. NUL .. ref.
local NUL = '\0'
local function laneKey(lane)
  local z = string.find(lane, NUL, 1, true)
  if z then return string.sub(lane, 1, z - 1), string.sub(lane, z + 1) end
  return lane, nil
end
-- First open ref of a lane, or nil.
local function headOf(pend, lane)
  local gk, ref = laneKey(lane)
  if ref then
    if redis.call('ZSCORE', pend, lane) then return ref end
    return nil
  end
  local r = redis.call('ZRANGEBYLEX', pend, '[' .. gk .. NUL, '(' .. gk .. '\1', 'LIMIT', 0, 1)
  if r[1] then return string.sub(r[1], #gk + 2) end
  return nil
end
-- What `try` keeps of an open ref: attempts made, claims that lapsed, when the next attempt is due (0: at once).
local function tries(text)
  if not text then return 0, 0, 0 end
  local n, l, d = string.match(text, '^(%d+) (%d+) (%d+)$')
  return tonumber(n), tonumber(l), tonumber(d)
end
