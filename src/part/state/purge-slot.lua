#!lua flags=allow-oom
-- Drops a closed subscription which is not owned by any object, if its newest event is older than the retention.
-- Everything else is done by the sweep.
--@keys meta log subs endpoints positions lists dropped channel
--@args fence slot retentionMs look
-- look: 1 to check without dropping.
-- Returns {OK}, {BUSY}, or {FENCED} if a newer controller leads.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/message.lua
--@include ../lists/packing.lua
local OPEN, PAUSED = 111, 112
local fence = redis.call('HGET', KEY_META, 'fence')
if tonumber(fence or '0') > tonumber(ARG_FENCE) then return { 'FENCED' } end
local row = redis.call('HGET', KEY_SUBS, ARG_SLOT)
local route = row and string.byte(row)
if route == OPEN or route == PAUSED then return { 'BUSY' } end
local head = redis.call('HGET', KEY_LISTS, ARG_SLOT)
if head and msOf(unpackRef(head, #head - REF_BYTES + 1)) > now - ARG_RETENTION_MS then return { 'BUSY' } end
if row and ARG_LOOK ~= '1' then
  redis.call('HDEL', KEY_SUBS, ARG_SLOT)
  redis.call('HDEL', KEY_ENDPOINTS, ARG_SLOT)
  redis.call('HDEL', KEY_POSITIONS, ARG_SLOT)
  redis.call('ZADD', KEY_DROPPED, string.format('%.0f', now), ARG_SLOT)
  local version = redis.call('HINCRBY', KEY_META, 'version', 1)
  redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, 0, 0, version))
end
return { 'OK' }
