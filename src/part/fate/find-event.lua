#!lua flags=no-writes
-- Looks for an event in a part's log. You can use the id that was provided by its producer within the last 24
-- hours, or its ref.
--@keys meta log ids*
--@args gen id hour
-- id: 16 bytes of the hash of a producer's id, or a ref. If there are several events with the same id, the last one is
-- returned.
-- Returns {OK, ref, group key, metadata, bytes}, {OK} if there is no such event, {CLOCK, last hour with ids} if there
--         is no key for that hour, or GONE.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../log/sender-ids.lua
local meta = redis.call('HMGET', KEY_META, 'gen', 'ids')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
ARG_HOUR = tonumber(ARG_HOUR)
local lastHour = readHours(meta[2])
if lastHour and not isOwn(ARG_ID) then return { 'CLOCK', lastHour } end
local ref = isOwn(ARG_ID) and ARG_ID or knownIds({ ARG_ID })[ARG_ID]
local entry = ref and redis.call('XRANGE', KEY_LOG, idOf(ref), idOf(ref))[1]
if not entry then return { 'OK' } end
local fields = entry[2]
return { 'OK', ref, fields[2], fields[4], fields[6] }
