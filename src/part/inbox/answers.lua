#!lua flags=no-writes
-- Returns the answers to an event's failed attempts, if they have been stored. See claims/answers.lua.
--@keys answers
--@args slot ref
-- Returns {OK, values of P:answers*}, oldest first.
local first, last = string.match(redis.call('HGET', KEY_ANSWERS, ARG_SLOT) or '0 0 0', '^(%d+) (%d+)')
local fields, out = {}, { 'OK' }
for number = tonumber(first), tonumber(last) - 1 do fields[#fields + 1] = ARG_SLOT .. string.format(':%.0f', number) end
if #fields == 0 then return out end
for _, value in ipairs(redis.call('HMGET', KEY_ANSWERS, unpack(fields))) do
  local head = value and string.match(value, '^[^\n]*')
  if head and string.find(head, '\0' .. ARG_REF .. ' ', 9, true) then out[#out + 1] = value end
end
return out
