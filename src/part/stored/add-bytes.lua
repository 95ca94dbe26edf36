-- Changes the number of bytes that are stored by a part. The changes of a call are added up, and are then written by
-- `writeBytes`.
local byteChange = 0
local function addBytes(by) byteChange = byteChange + by end

-- Returns the number of bytes after all changes, as text. After `meta` was lost, they restart at 0 although there are
-- events, so they would become negative.
local function changedBytes(before) return string.format('%.0f', math.max(0, tonumber(before or '0') + byteChange)) end

local function writeBytes()
  if byteChange == 0 then return end
  redis.call('HSET', KEY_META, 'bytes', changedBytes(redis.call('HGET', KEY_META, 'bytes')))
  byteChange = 0
end
