#!lua flags=allow-oom
-- Ends the turn of a call which has an Idempotency-Key.
--@keys call calls ofAccount
--@args name turn how answer
-- how: done (repeated calls get this answer), forget (this turn did nothing; the key may be used for something else,
-- unless there was an earlier turn, which may have done something), or release (a repeated call goes on with it).
-- Returns OK, or LOST (another process has taken it over, or it is too old).
if redis.call('HGET', KEY_CALL, 'turn') ~= ARG_TURN then return 'LOST' end
if ARG_HOW == 'done' then
  redis.call('HSET', KEY_CALL, 'answer', ARG_ANSWER)
  redis.call('HDEL', KEY_CALL, 'turn', 'untilMs', 'seed', 'repeated')
elseif ARG_HOW == 'forget' and redis.call('HEXISTS', KEY_CALL, 'repeated') == 0 then
  redis.call('DEL', KEY_CALL)
  redis.call('ZREM', KEY_CALLS, ARG_NAME)
  redis.call('ZREM', KEY_OF_ACCOUNT, ARG_NAME)
else
  redis.call('HDEL', KEY_CALL, 'turn')
  redis.call('HSET', KEY_CALL, 'untilMs', '0')
end
return 'OK'
