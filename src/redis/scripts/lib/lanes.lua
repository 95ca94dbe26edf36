-- A lane's key is the group key, or of a replay: group key .. \1 .. replay id. An ordered lane is its key; with
-- ordering None each event is its own lane: key .. NUL .. ref.
-- Open references lie in one ZSET `pend`, score 0, as key .. NUL .. ref. (Neither \0 nor \1 occurs in group keys or ids.)
local NUL = '\0'
-- In `due` a lane has the ms when it is due; one that waits for a retry stands above all the others, by this much: what
-- was never tried is claimed before what failed.
local RETRIES = 4503599627370496
-- Key of a lane, and the ref of one that holds a single event.
local function laneKey(lane)
  local z = string.find(lane, NUL, 1, true)
  if z then return string.sub(lane, 1, z - 1), string.sub(lane, z + 1) end
  return lane, nil
end
-- Group key of a lane's key.
local function groupOf(key)
  local z = string.find(key, '\1', 1, true)
  return z and string.sub(key, 1, z - 1) or key
end
-- Whether what waits under this key is an event's first delivery: no replay, and no test event, whose group key is ''.
local function isFirst(key)
  return key ~= '' and not string.find(key, '\1', 1, true)
end
-- What `try`, records and `fin` know an open reference by: the ref, with the replay's id where it is one's.
local function entryOf(key, ref)
  local z = string.find(key, '\1', 1, true)
  return z and (ref .. ':' .. string.sub(key, z + 1)) or ref
end
-- First open ref of a lane, or nil; and whether there are more behind it.
local function headOf(pend, lane)
  local key, ref = laneKey(lane)
  if ref then
    if redis.call('ZSCORE', pend, lane) then return ref, false end
    return nil
  end
  local r = redis.call('ZRANGEBYLEX', pend, '[' .. key .. NUL, '(' .. key .. '\1', 'LIMIT', 0, 2)
  if r[1] then return string.sub(r[1], #key + 2), r[2] ~= nil end
  return nil
end
-- What `try` keeps of an open ref: attempts made, claims that lapsed, when the next attempt is due (0: at once), and
-- the last 20 attempts that failed: (' ' .. ms,status or reason,latency ms)*.
local function tries(text)
  if not text then return 0, 0, 0, '' end
  local n, l, d, failed = string.match(text, '^(%d+) (%d+) (%d+)(.*)$')
  return tonumber(n), tonumber(l), tonumber(d), failed
end
