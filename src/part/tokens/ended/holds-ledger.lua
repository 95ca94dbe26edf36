#!lua flags=no-writes
-- Checks if a part still has a ledger, which it may report or has to note the end of.
--@keys meta
--@args gen ledger
-- Returns {OK}, or GONE.
local meta = redis.call('HMGET', KEY_META, 'gen', 'ledger', 'owed', 'ended')
if meta[1] == ARG_GEN and meta[2] == ARG_LEDGER then return { 'OK' } end
local name = ' ' .. ARG_GEN .. ' ' .. ARG_LEDGER
if string.find(meta[3] or '', name .. ' ', 1, true) then return { 'OK' } end
if string.find(meta[4] or '', name .. ';', 1, true) then return { 'OK' } end
return { 'GONE' }
