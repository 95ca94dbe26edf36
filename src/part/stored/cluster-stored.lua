#!lua flags=allow-oom
-- Notes the stored bytes of a part for ingress. A part that is not listed in this generation has no entry: it was removed.
--@keys parts stored
--@args name gen bytes payer
-- bytes: 0 removes the entry.
-- Returns {OK}, or GONE.
local isListed = redis.call('HGET', KEY_PARTS, ARG_NAME) == ARG_GEN
if isListed and ARG_BYTES ~= '0' then
  redis.call('HSET', KEY_STORED, ARG_NAME, ARG_GEN .. ' ' .. ARG_BYTES .. ' ' .. ARG_PAYER)
else
  redis.call('HDEL', KEY_STORED, ARG_NAME)
end
return { isListed and 'OK' or 'GONE' }
