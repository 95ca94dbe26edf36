-- Removes the record of a slot from an event's records, but only if it has this outcome. Returns the record, and
-- how many bytes were read.
local function takeRecord(at, name, slot, outcome)
  local packed, bytes = struct.pack('>I5', tonumber(slot, 32)), 0
  local function takeFrom(field)
    local chunk = redis.call('HGET', KEYS[at], field)
    if not chunk then return nil, 0 end
    bytes = bytes + #chunk
    local from = string.find(chunk, packed, 2, true) and 2 or #chunk
    while from < #chunk do
      local last = string.find(chunk, ';', from + 5, true)
      if not last then break end
      if string.sub(chunk, from, from + 4) == packed then
        local record = string.sub(chunk, from + 5, last - 1)
        if string.sub(record, 1, 1) ~= outcome then return nil, -1 end
        redis.call('HSET', KEYS[at], field, string.sub(chunk, 1, from - 1) .. string.sub(chunk, last + 1))
        return record, -1
      end
      from = last + 1
    end
    return nil, string.byte(chunk)
  end
  local record, full = takeFrom(name)
  while full > 0 do
    local found, isLast = takeFrom(name .. '\0' .. full)
    record = found
    full = isLast == -1 and 0 or full - 1
  end
  return record, bytes
end
