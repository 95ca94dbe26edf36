-- Stores the response bodies of failed attempts. For each slot, the last 100 of them are kept (up to 64 KiB). The
-- fields of P:answers are: slot → first, next, bytes; slot:number → entry, ' ', attempt, + if truncated, line end,
-- body.
local MOST_ANSWERS, MOST_ANSWER_BYTES = 100, 65536
local function keepAnswer(slot, entry, attempt, cut, body)
  local head = redis.call('HGET', KEY_ANSWERS, slot) or '0 0 0'
  local first, last, bytes = string.match(head, '^(%d+) (%d+) (%d+)$')
  first, last, bytes = tonumber(first), tonumber(last), tonumber(bytes)
  local value = entry .. ' ' .. string.format('%.0f', attempt) .. cut .. '\n' .. body
  redis.call('HSET', KEY_ANSWERS, slot .. string.format(':%.0f', last), value)
  last, bytes = last + 1, bytes + #value
  while last - first > MOST_ANSWERS or bytes > MOST_ANSWER_BYTES do
    local field = slot .. string.format(':%.0f', first)
    bytes = bytes - redis.call('HSTRLEN', KEY_ANSWERS, field)
    redis.call('HDEL', KEY_ANSWERS, field)
    first = first + 1
  end
  redis.call('HSET', KEY_ANSWERS, slot, string.format('%.0f %.0f %.0f', first, last, bytes))
end
