#!lua
-- Begins a call that has an Idempotency-Key. Returns the result if there already was a call with this key.
--@keys call calls ofAccount
--@args now name request seed turn turnMs ttlMs most mostOfAccount
-- name: of the call in the list of its owner's calls. request: hash of what is asked for. turn: text that is used once,
-- by which the caller ends the call. turnMs: time after which others may go on with it. most, mostOfAccount: how many
-- calls of an owner and of its account are kept.
-- Returns {RUN, seed of the first call}, {DONE, answer}, {BUSY, ms until its turn ends}, {CONFLICT} (another request),
--         or {MANY, ms until one of these calls is forgotten}.
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
for _, list in ipairs({ { KEY_CALLS, ARG_MOST }, { KEY_OF_ACCOUNT, ARG_MOST_OF_ACCOUNT } }) do
  local calls, most = list[1], tonumber(list[2])
  redis.call('ZREMRANGEBYSCORE', calls, '-inf', ARG_NOW)
  if redis.call('ZCARD', calls) >= most then
    local first = redis.call('ZRANGE', calls, 0, 0, 'WITHSCORES')
    return { 'MANY', tonumber(first[2]) - now }
  end
end
redis.call('HSET', KEY_CALL, 'request', ARG_REQUEST, 'seed', ARG_SEED, 'turn', ARG_TURN, 'untilMs', untilMs)
redis.call('PEXPIRE', KEY_CALL, ARG_TTL_MS)
for _, calls in ipairs({ KEY_CALLS, KEY_OF_ACCOUNT }) do
  redis.call('ZADD', calls, string.format('%.0f', now + ARG_TTL_MS), ARG_NAME)
  redis.call('PEXPIRE', calls, ARG_TTL_MS)
end
return { 'RUN', ARG_SEED }
