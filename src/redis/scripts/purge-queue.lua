#!lua flags=allow-oom
-- Deletes the record of a queue without an object. It is kept if the queue accepts events, or if it was recreated.
-- KEYS  1 Q:meta
-- ARGV  1 fence  2 gen  3 1 to only look
-- Returns OK, BUSY, or FENCED when a newer controller leads.
local m = redis.call('HMGET', KEYS[1], 'fence', 'gen', 'state')
if m[1] and tonumber(m[1]) > tonumber(ARGV[1]) then return 'FENCED' end
if m[3] == 'open' or (m[2] and m[2] ~= ARGV[2]) then return 'BUSY' end
if ARGV[3] ~= '1' then redis.call('UNLINK', KEYS[1]) end
return 'OK'
