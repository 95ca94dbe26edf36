#!lua
-- Begins a call that has an Idempotency-Key. Returns the result if there already was a call with this key.
--@keys call calls
--@args now name request seed turn turnMs ttlMs most
-- name: of the call in the list of its owner's calls. request: hash of what is asked for. turn: text that is used once,
-- by which the caller ends the call. turnMs: time after which others may go on with it. most: how many calls of an
-- owner are kept.
-- Returns {RUN, seed of the first call}, {DONE, answer}, {BUSY, ms until its turn ends}, {CONFLICT} (another request),
--         or {MANY, ms until one of the owner's calls is forgotten}.
local known = redis.call('HMGET', KEY_CALL, 'request', 'seed', 'untilMs', 'answer')
local now = tonumber(ARG_NOW)
local untilMs = string.format('%.0f', now + ARG_TURN_MS)
if known[1] then
  if known[1] ~= ARG_REQUEST then return { 'CONFLICT' } end
  if known[4] then return { 'DONE', known[4] } end
  -- If a time is further in the future, the clock was set back.
  local left = math.min(tonumber(known[3]) - now, tonumber(ARG_TURN_MS))
  if left > 0 then return { 'BUSY', left } end
  redis.call('HSET', KEY_CALL, 'turn', ARG_TURN, 'untilMs', untilMs, 'repeated', '1')
  return { 'RUN', known[2] }
end
redis.call('ZREMRANGEBYSCORE', KEY_CALLS, '-inf', ARG_NOW)
if redis.call('ZCARD', KEY_CALLS) >= tonumber(ARG_MOST) then
  local first = redis.call('ZRANGE', KEY_CALLS, 0, 0, 'WITHSCORES')
  return { 'MANY', tonumber(first[2]) - now }
end
redis.call('HSET', KEY_CALL, 'request', ARG_REQUEST, 'seed', ARG_SEED, 'turn', ARG_TURN, 'untilMs', untilMs)
redis.call('PEXPIRE', KEY_CALL, ARG_TTL_MS)
redis.call('ZADD', KEY_CALLS, string.format('%.0f', now + ARG_TTL_MS), ARG_NAME)
redis.call('PEXPIRE', KEY_CALLS, ARG_TTL_MS)
return { 'RUN', ARG_SEED }
