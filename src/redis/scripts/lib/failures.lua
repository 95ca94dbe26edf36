-- Keeps the body that a failed attempt was answered with: the last 100, and no more than 256 KiB, of one subscription.
-- The hash holds first, next and bytes, and number → entry .. ' ' .. attempt .. cut .. '\n' .. body, where `cut` is a plus
-- when the body was longer, else ''.
local function keepFailure(key, entry, attempt, cut, body)
  local has = redis.call('HMGET', key, 'first', 'next', 'bytes')
  local first, last, bytes = tonumber(has[1] or '0'), tonumber(has[2] or '0'), tonumber(has[3] or '0')
  local value = entry .. ' ' .. attempt .. cut .. '\n' .. body
  redis.call('HSET', key, last, value)
  last, bytes = last + 1, bytes + #value
  while last - first > 100 or bytes > 262144 do
    bytes = bytes - redis.call('HSTRLEN', key, first)
    redis.call('HDEL', key, first)
    first = first + 1
  end
  redis.call('HSET', key, 'first', first, 'next', last, 'bytes', bytes)
end
