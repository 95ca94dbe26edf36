#!lua flags=allow-oom
-- Raises what a part may be routed by what its account has granted to the ledger since: a total, so it may be repeated.
--@keys meta channel
--@args gen ledger given
-- Returns {OK}, or GONE. Whoever works on a part that was held back for want of tokens hears of it.
--@include ../lanes/clock.lua
--@include ../lanes/message.lua
local meta = redis.call('HMGET', KEY_META, 'gen', 'ledger', 'given', 'granted', 'hold', 'version')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local more = tonumber(ARG_GIVEN) - tonumber(meta[3] or '0')
if meta[2] ~= ARG_LEDGER or not meta[4] or more <= 0 then return { 'OK' } end
redis.call('HSET', KEY_META, 'given', ARG_GIVEN, 'granted', string.format('%.0f', tonumber(meta[4]) + more))
if meta[5] == 'tokens' then redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, 1, 0, meta[6] or '0')) end
return { 'OK' }
