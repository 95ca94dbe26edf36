#!lua flags=allow-oom
-- Starts to take back bytes from a part, or records how many bytes it has left. Until this has been done, the account
-- counts everything that was granted.
--@keys space
--@args part seq space nowMs
-- seq '': begin. Otherwise: the number of the change that begin returned, and the bytes that the part has stored; ''
-- where the part is gone, or has another account.
-- Returns {OK, number of the change}.
local had = redis.call('HGET', KEY_SPACE, ARG_PART)
local seq, amount = string.match(had or '', '^(%d+) (%d+) ')
if not seq then return { 'OK', '0' } end
if ARG_SEQ == '' then
  seq = string.format('%.0f', tonumber(seq) + 1)
  redis.call('HSET', KEY_SPACE, ARG_PART, seq .. ' ' .. amount .. ' ' .. ARG_NOW_MS)
elseif seq == ARG_SEQ and ARG_SPACE == '' then
  redis.call('HDEL', KEY_SPACE, ARG_PART)
elseif seq == ARG_SEQ then
  redis.call('HSET', KEY_SPACE, ARG_PART, seq .. ' ' .. ARG_SPACE .. ' ' .. ARG_NOW_MS)
end
return { 'OK', seq }
