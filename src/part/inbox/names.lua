-- Parses the names of lanes and entries. It is used by scripts that don't change a lane. You can find the format in
-- lanes/lanes.lua.
local function slotOf(lane) return string.sub(lane, 1, 8) end
local function groupOf(lane) return string.match(lane, '^[^%z\1]*') end
local function entryOf(lane, ref) return string.byte(lane, -16) == 0 and lane or (lane .. '\0' .. ref) end
local function replayOf(lane) return string.find(lane, '\1', 9, true) and string.match(lane, '\1([^%z]+)') or nil end
local function readFields(key, fields, into)
  for from = 1, #fields, 4000 do
    local till = math.min(#fields, from + 3999)
    local values = redis.call('HMGET', key, unpack(fields, from, till))
    for i = 1, till - from + 1 do into[fields[from + i - 1]] = values[i] end
  end
end
