#!lua flags=allow-oom
-- Returns the open events that a slot without an endpoint can pull now. Lanes are sorted by how long they have been
-- waiting.
--@keys meta keys subs endpoints lanes pending waiting off
--@args gen slot most all
-- all: 1 for whatever is open; 0 for the head of each lane: what follows waits for it.
-- Returns {OK, 1 where there is more, (group key, of a replay with \1 and its id, ref)*}, or one word: CLOSED (missing
--         is closed), GONE, PAUSED, PUSHED (it has an endpoint). At most 1,000 lanes are looked at.
-- If the activation of a lane does not exist any more, the lane is parked. This is the same as for claims.
--@include ../inbox/names.lua
--@include ../gate/activations.lua
--@include ../inbox/permission.lua
local MOST_LANES = 1000
local word = permissionOf(ARG_SLOT)
if word then return { word } end
if redis.call('HEXISTS', KEY_ENDPOINTS, ARG_SLOT) == 1 then return { 'PUSHED' } end
local most, from, to = tonumber(ARG_MOST), '[' .. ARG_SLOT, '(' .. ARG_SLOT .. '\255'
local waits = redis.call('ZRANGEBYLEX', KEY_WAITING, from, to, 'LIMIT', 0, MOST_LANES)
local isAnyOff = redis.call('EXISTS', KEY_OFF) == 1
local out, count, more = { 'OK', 0 }, 0, #waits == MOST_LANES

local function entriesOf(lane)
  if string.byte(lane, -16) == 0 then return { lane } end
  local wanted = ARG_ALL == '1' and most - count + 1 or 1
  return redis.call('ZRANGEBYLEX', KEY_PENDING, '[' .. lane .. '\0', '(' .. lane .. '\1', 'LIMIT', 0, wanted)
end

for _, wait in ipairs(waits) do
  local lane = ARG_SLOT .. string.sub(wait, 21)
  if isAnyOff and redis.call('HGET', KEY_OFF, groupOf(lane)) == '1' then
    redis.call('ZREM', KEY_WAITING, wait)
    redis.call('HSET', KEY_LANES, lane, 'p')
  else
    for _, entry in ipairs(entriesOf(lane)) do
      if count == most then
        more = true
        break
      end
      count = count + 1
      out[#out + 1] = string.sub(entry, 9, -17)
      out[#out + 1] = string.sub(entry, -15)
    end
    if count == most and more then break end
  end
end
out[2] = more and 1 or 0
return out
