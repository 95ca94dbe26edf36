#!lua flags=no-writes
-- Lists all parts that have been granted tokens by an account which they might not have used.
--@keys hold
-- Returns {OK, part*}, at most 64.
local out, page = { 'OK' }, redis.call('HSCAN', KEY_HOLD, '0', 'COUNT', 64)[2]
for i = 1, math.min(#page, 128), 2 do
  if string.find(page[i], ':.*:') then out[#out + 1] = page[i] end
end
return out
