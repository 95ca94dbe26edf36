-- Removes the records of successful deliveries from events which are being removed. All other records are kept, because
-- the inbox lists deliveries that have failed after their events have expired. What is left of an event's chunks is
-- moved to as few chunks as possible.
-- MOST_SCANNED: the number of bytes after which a call does not continue with other chunks. LARGE_CHUNK: if the last
-- chunk has more bytes, which is only possible with more than 5 MB of results, all records of the event are kept.
local DELIVERED, LARGE_CHUNK = 100, 196608
local CHUNKS_AT_ONCE, MOST_SCANNED = 16, 98304
local scanned = 0

local function hasDelivered(chunk)
  local at = 2
  while at < #chunk do
    if string.byte(chunk, at + 5) == DELIVERED then return true end
    at = (string.find(chunk, ';', at + 5, true) or #chunk) + 1
  end
  return false
end

-- Adds all records of a chunk to `kept` which are not delivered. Returns how many bytes they have.
local function takeFailed(chunk, kept)
  local at, bytes = 2, 0
  while at < #chunk do
    local last = string.find(chunk, ';', at + 5, true) or #chunk
    if string.byte(chunk, at + 5) ~= DELIVERED then
      kept[#kept + 1] = string.sub(chunk, at, last)
      bytes = bytes + last - at + 1
    end
    at = last + 1
  end
  return bytes
end

-- Removes the records of an event, or of one of its replays, in KEYS[at]. `from`: 0, or what was returned by the last
-- call.
-- Returns nil if all of them have been read, and whether any are left. If some are left to read, this has to be called
-- again: 256 times the number of full chunks that have been read, plus the number of chunks that are left of them.
local function forgetChunks(at, name, from, most)
  local size = redis.call('HSTRLEN', KEYS[at], name)
  if size == 0 or size > LARGE_CHUNK then return nil, size > 0 end
  local head = redis.call('HGET', KEYS[at], name)
  local full, read, left = string.byte(head), math.floor(from / 256), from % 256
  local set, gone, kept, bytes = {}, {}, {}, 0
  local function put(field, number, text)
    set[#set + 1] = field
    set[#set + 1] = string.char(number) .. text
  end
  local function putKept()
    if bytes == 0 then return end
    left = left + 1
    put(name .. '\0' .. left, left - 1, table.concat(kept))
    kept, bytes = {}, 0
  end
  local function write()
    for number = left + 1, read do gone[#gone + 1] = name .. '\0' .. number end
    inSlices('HSET', KEYS[at], set)
    inSlices('HDEL', KEYS[at], gone)
  end
  while read < full do
    if scanned >= most then
      putKept()
      write()
      return 256 * read + left
    end
    local fields, atOnce = {}, math.max(1, math.floor(CHUNKS_AT_ONCE / 2 ^ math.floor(read / 40)))
    for number = read + 1, math.min(full, read + atOnce) do fields[#fields + 1] = name .. '\0' .. number end
    for _, chunk in ipairs(redis.call('HMGET', KEYS[at], unpack(fields))) do
      read = read + 1
      scanned = scanned + #(chunk or '')
      if chunk and hasDelivered(chunk) then
        bytes = bytes + takeFailed(chunk, kept)
        if bytes > CHUNK_BYTES then putKept() end
      elseif chunk then
        putKept()
        left = left + 1
        if left < read then put(name .. '\0' .. left, left - 1, string.sub(chunk, 2)) end
      end
    end
  end
  scanned = scanned + #head
  if hasDelivered(head) then takeFailed(head, kept) else kept[#kept + 1] = string.sub(head, 2) end
  local last = string.char(left) .. table.concat(kept)
  if #last == 1 and left == 0 then gone[1] = name elseif last ~= head then put(name, left, string.sub(last, 2)) end
  write()
  return nil, #last > 1 or left > 0
end

-- `names`: names of the records of replays in KEYS[at]. Replays only have a few records each.
local function forgetDelivered(at, names)
  for _, name in ipairs(names) do forgetChunks(at, name, 0, math.huge) end
end
