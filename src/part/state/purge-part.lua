#!lua flags=allow-oom
-- Checks if a part that is not owned by any object can be removed, and closes it permanently. After that, all other
-- scripts will return GONE, and it is possible to call remove.lua. It is not possible to remove a part that accepts
-- events or has a different generation. This is also not possible if its newest event is still within the retention and
-- either has not been delivered or is included in the subscription inbox.
--@keys meta log subs positions pending claims
--@args fence gen look
-- look: 1 to check without closing.
-- Returns {OK}, {BUSY}, or {FENCED} if a newer controller leads.
--@include ../lanes/clock.lua
--@include ../tokens/ledger.lua
--@include ../tokens/removing.lua
local LONGEST_MS = 2592000000
local meta = redis.call('HMGET', KEY_META, 'fence', 'gen', 'state', 'hold', 'retentionMs')
if tonumber(meta[1] or '0') > tonumber(ARG_FENCE) then return { 'FENCED' } end
-- Return if the part has already been closed.
if not meta[2] or meta[2] == '-' then return { 'OK' } end
if meta[3] == 'open' or meta[2] ~= ARG_GEN then return { 'BUSY' } end
local newest = redis.call('XREVRANGE', KEY_LOG, '+', '-', 'COUNT', 1)[1]
if newest and tonumber(string.match(newest[1], '^%d+')) > now - tonumber(meta[5] or LONGEST_MS) then
  if meta[4] or redis.call('EXISTS', KEY_SUBS, KEY_POSITIONS, KEY_PENDING, KEY_CLAIMS) > 0 then return { 'BUSY' } end
end
if ARG_LOOK ~= '1' then
  removeMeta(ARG_FENCE, ARG_GEN)
end
return { 'OK' }
