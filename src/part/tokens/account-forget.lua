#!lua flags=allow-oom
-- Removes the tokens and the space that have been granted to a part which does not exist any more.
--@keys hold grants space
--@args part
-- Returns {OK}.
redis.call('HDEL', KEY_GRANTS, ARG_PART)
redis.call('HDEL', KEY_HOLD, ARG_PART)
redis.call('HDEL', KEY_SPACE, ARG_PART)
return { 'OK' }
