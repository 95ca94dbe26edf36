#!lua flags=no-writes
-- Reads the tokens that an account has used, including those that parts have not reported yet.
--@keys meta seen
--@args ...
-- More: (part.ledger, total)*, as they were read from the parts before this call.
-- Returns {OK, tokens}.
local used = tonumber(redis.call('HGET', KEY_META, 'used') or '0')
for i = FIRST, #ARGV, 2 do
  local seen = tonumber(redis.call('HGET', KEY_SEEN, ARGV[i]) or '0')
  used = used + math.max(0, tonumber(ARGV[i + 1]) - seen)
end
return { 'OK', string.format('%.0f', used) }
