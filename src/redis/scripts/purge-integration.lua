#!lua flags=allow-oom
-- Removes the slot of an integration without an object. It is kept if the integration is not closed, or if there is
-- still an active group key.
-- KEYS  1 I:meta  2 I:act  3.. all else that is to go
-- ARGV  1 fence  2 1 to only look
-- Returns OK, BUSY, or FENCED when a newer controller leads.
local m = redis.call('HMGET', KEYS[1], 'fence', 'state')
if m[1] and tonumber(m[1]) > tonumber(ARGV[1]) then return 'FENCED' end
if (m[2] and m[2] ~= 'closed') or redis.call('HLEN', KEYS[2]) > 0 then return 'BUSY' end
if ARGV[2] ~= '1' then redis.call('UNLINK', unpack(KEYS)) end
return 'OK'
