-- Dispatchers that work on the part, in P:ready: until (ms; 3 s after the last exchange), limit and held (claims),
-- pushed (total claims), room (bytes that may be pushed before its next exchange), bytes (total pushed), number of its
-- last exchange.
local function readReady(text)
  if not text then return nil end
  local pattern = '^(%d+) (%d+) (%d+) (%d+) (%-?%d+) (%d+) (%d+)$'
  local untilMs, limit, held, pushed, room, bytes, number = string.match(text, pattern)
  return {
    untilMs = tonumber(untilMs),
    limit = tonumber(limit),
    held = tonumber(held),
    pushed = tonumber(pushed),
    room = tonumber(room),
    bytes = tonumber(bytes),
    number = tonumber(number),
  }
end

local function writeReady(dispatcher, r)
  local text = string.format('%d %d %d %d %d %d ', r.untilMs, r.limit, r.held, r.pushed, r.room, r.bytes)
  redis.call('HSET', KEY_READY, dispatcher, text .. string.format('%d', r.number))
end
