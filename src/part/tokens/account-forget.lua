#!lua flags=allow-oom
-- Forgets the tokens and the space that were granted to a part that is gone.
--@keys hold grants space
--@args part
-- Returns {OK}.
redis.call('HDEL', KEY_GRANTS, ARG_PART)
redis.call('HDEL', KEY_HOLD, ARG_PART)
redis.call('HDEL', KEY_SPACE, ARG_PART)
return { 'OK' }
