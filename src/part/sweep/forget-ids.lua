#!lua flags=allow-oom
-- Frees the ids of producers for hours which are no longer compared by ingress, and gives back their bytes.
--@keys meta ids*
--@args gen first
-- first: hour of the first key in KEYS.
-- Returns {OK, number of hours freed}, or GONE.
--@include ../lanes/clock.lua
--@include ../log/cost.lua
--@include ../stored/add-bytes.lua
local HOUR_MS, KEPT_MS = 3600000, 90000000
local meta = redis.call('HMGET', KEY_META, 'gen', 'ids')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local first, last = string.match(meta[2] or '', '^(%d+) (%d+)$')
first, last = tonumber(first), tonumber(last)
if first ~= tonumber(ARG_FIRST) then return { 'OK', 0 } end
local freed, ids = 0, 0
for at = FIRST_IDS, #KEYS do
  local hour = first + freed
  if hour > last or now < (hour + 1) * HOUR_MS + KEPT_MS then break end
  ids = ids + redis.call('HLEN', KEYS[at])
  redis.call('UNLINK', KEYS[at])
  freed = freed + 1
end
addBytes(-ID_COST * ids)
writeBytes()
if freed == 0 then return { 'OK', 0 } end
if first + freed > last then redis.call('HDEL', KEY_META, 'ids')
else redis.call('HSET', KEY_META, 'ids', string.format('%.0f %.0f', first + freed, last)) end
return { 'OK', freed }
