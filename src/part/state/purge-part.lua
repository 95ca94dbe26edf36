#!lua flags=allow-oom
-- Says whether a part may be removed that no object owns, and closes it for good: who works there is answered GONE from then
-- on, and remove.lua may follow. It may not while it takes events, or is of another generation; nor while its newest event is
-- younger than its retention and something of it is undelivered, or a subscription is left whose inbox lists it.
--@keys meta log subs positions pending claims
--@args fence gen look
-- look: 1 to only look.
-- Returns {OK}, {BUSY}, or {FENCED}: a newer controller leads.
--@include ../lanes/clock.lua
local LONGEST_MS = 2592000000
local meta = redis.call('HMGET', KEY_META, 'fence', 'gen', 'state', 'hold', 'retentionMs')
if tonumber(meta[1] or '0') > tonumber(ARG_FENCE) then return { 'FENCED' } end
-- It was closed before.
if not meta[2] or meta[2] == '-' then return { 'OK' } end
if meta[3] == 'open' or meta[2] ~= ARG_GEN then return { 'BUSY' } end
local newest = redis.call('XREVRANGE', KEY_LOG, '+', '-', 'COUNT', 1)[1]
if newest and tonumber(string.match(newest[1], '^%d+')) > now - tonumber(meta[5] or LONGEST_MS) then
  if meta[4] or redis.call('EXISTS', KEY_SUBS, KEY_POSITIONS, KEY_PENDING, KEY_CLAIMS) > 0 then return { 'BUSY' } end
end
if ARG_LOOK ~= '1' then
  redis.call('UNLINK', KEY_META)
  redis.call('HSET', KEY_META, 'fence', ARG_FENCE, 'gen', '-', 'was', ARG_GEN)
end
return { 'OK' }
