#!lua flags=no-writes
-- Reads the first deliveries of a slot which have been claimed. Each call reads a single page of the claims of all
-- slots.
--@keys claims
--@args slot cursor
-- Returns {OK, cursor ('0': done), (group key, ref)*}
--@include ../inbox/names.lua
--@include ended.lua
local page = redis.call('HSCAN', KEY_CLAIMS, ARG_CURSOR, 'COUNT', 512)
local out = { 'OK', page[1] }
for i = 1, #page[2], 2 do
  local lane, claim = page[2][i], page[2][i + 1]
  if slotOf(lane) == ARG_SLOT and not replayOf(lane) and not isEnded(claim) then
    out[#out + 1] = string.sub(groupOf(lane), 9)
    out[#out + 1] = string.sub(claim, 2, 16)
  end
end
return out
