#!lua flags=allow-oom
-- Raises the number of tokens that a part is allowed to route to the number that its account has granted to the ledger.
-- Since this is a total, it can be repeated.
--@keys meta channel
--@args gen ledger given
-- Returns {OK}, or GONE. If a part was held back because it had no tokens, this is announced to the dispatchers that
-- are working on it.
--@include ../lanes/clock.lua
--@include ../lanes/message.lua
local meta = redis.call('HMGET', KEY_META, 'gen', 'ledger', 'given', 'granted', 'hold', 'version')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local more = tonumber(ARG_GIVEN) - tonumber(meta[3] or '0')
if meta[2] ~= ARG_LEDGER or not meta[4] or more <= 0 then return { 'OK' } end
redis.call('HSET', KEY_META, 'given', ARG_GIVEN, 'granted', string.format('%.0f', tonumber(meta[4]) + more))
if meta[5] == 'tokens' then redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, 1, 0, meta[6] or '0')) end
return { 'OK' }
