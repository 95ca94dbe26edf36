#!lua flags=allow-oom
-- Forgets what was granted to a part that is gone.
--@keys hold grants
--@args part
-- Returns {OK}.
redis.call('HDEL', KEY_GRANTS, ARG_PART)
redis.call('HDEL', KEY_HOLD, ARG_PART)
return { 'OK' }
