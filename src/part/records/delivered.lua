-- Removes the records of events that were delivered to all of their subscriptions.
local DELIVERED = 100

-- Returns whether a chunk of records only has delivered ones.
local function areDelivered(chunk)
  local at = 2
  while at < #chunk do
    if string.byte(chunk, at + 5) ~= DELIVERED then return false end
    at = (string.find(chunk, ';', at + 5, true) or #chunk) + 1
  end
  return true
end

-- `names`: names of records in KEYS[at]. All other records are kept, because the inbox lists deliveries that have failed
-- after their events have expired.
local function forgetDelivered(at, names)
  if #names == 0 then return end
  local chunks, gone = redis.call('HMGET', KEYS[at], unpack(names)), {}
  for i, name in ipairs(names) do
    local chunk = chunks[i]
    local fields, isGone = { name }, chunk and areDelivered(chunk)
    for number = 1, isGone and string.byte(chunk) or 0 do
      fields[#fields + 1] = name .. '\0' .. number
      isGone = isGone and areDelivered(redis.call('HGET', KEYS[at], fields[#fields]) or '')
    end
    for _, field in ipairs(isGone and fields or {}) do gone[#gone + 1] = field end
  end
  inSlices('HDEL', KEYS[at], gone)
end
