-- Adds an attempt to the record of an event that ended while the attempt was in progress. It does not change how and
-- when the event ended. Returns the number of attempts, or nil if the record does not exist any more.
local function addLateAttempt(at, name, ref, slot, note)
  local packed, attempts = packSlot(slot), nil

  -- Returns the chunk with the changed record, or nil if the record is in another chunk.
  local function changedChunk(chunk)
    local from = string.find(chunk, packed, 2, true) and 2 or #chunk
    while from < #chunk do
      local last = string.find(chunk, ';', from + 5, true)
      if not last then return nil end
      if string.sub(chunk, from, from + 4) == packed then
        local record = string.sub(chunk, from + 5, last - 1)
        local ended, made, how, failed = string.match(record, '^(%a%x+ )(%x+)( [^,]+)(.*)$')
        attempts = tonumber(made, 16) + 1
        local longer = ended .. string.format('%x', attempts) .. how .. addFailed(failed, ageOf(ref) .. ' ' .. note)
        -- The slot and the last character are not included.
        local bytes = failedCost(#longer + 6) - failedCost(#record + 6)
        if string.byte(record) == 100 then bytes = 0 end
        if name ~= ref or isTestRef(ref) then
          redis.call('HINCRBY', KEYS[at], slot, bytes)
        else
          failedBytes[at] = (failedBytes[at] or 0) + bytes
        end
        return string.sub(chunk, 1, from + 4) .. longer .. string.sub(chunk, last)
      end
      from = last + 1
    end
  end

  if not (recordsAt[at] and recordsAt[at][name]) then readRecords({ [at] = { name } }) end
  local chunk = recordsAt[at][name]
  local changed = changedChunk(chunk)
  if changed then
    recordsAt[at][name] = changed
    changedRecords[at] = changedRecords[at] or {}
    changedRecords[at][name] = true
    return attempts
  end
  for number = string.byte(chunk), 1, -1 do
    local field = name .. '\0' .. number
    local full = changedChunk(redis.call('HGET', KEYS[at], field) or '')
    if full then
      redis.call('HSET', KEYS[at], field, full)
      return attempts
    end
  end
end
