#!lua flags=allow-oom
-- Records a part's stored bytes, so that they can be read by ingress. If a part is not included in the list with
-- this generation, it was removed and does not get an entry.
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
