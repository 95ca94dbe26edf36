-- Redis keeps a sorted set of up to 128 short members as one list, where each change goes through all of them: from a few
-- dozen on that costs five times as much as a skiplist. A long member makes it one, and it stays one without it.
local function toSkiplist(key)
  if redis.call('ZCARD', key) < 32 or redis.call('OBJECT', 'ENCODING', key) == 'skiplist' then return end
  local long = string.rep(' ', 65)
  redis.call('ZADD', key, '+inf', long)
  redis.call('ZREM', key, long)
end
