#!lua flags=allow-oom
-- Removes the remaining data of a tenant without queues, integrations, or subscriptions.
-- KEYS  1 T:meta  2 T:index  3.. all else that is to go
-- ARGV  1 fence  2 1 to only look
-- Returns OK, BUSY, or FENCED when a newer controller leads.
local fence = redis.call('HGET', KEYS[1], 'fence')
if fence and tonumber(fence) > tonumber(ARGV[1]) then return 'FENCED' end
if redis.call('EXISTS', KEYS[2]) == 1 then return 'BUSY' end
if ARGV[2] ~= '1' then redis.call('UNLINK', unpack(KEYS)) end
return 'OK'
