#!lua flags=allow-oom
-- Frees the records of events which are older than the time for which records should be kept. This is as long again as
-- the retention, but not longer than the longest retention. The `recs` field of P:meta contains the first bucket which
-- has not been freed yet. The bytes of failed deliveries are given back. tidy.lua, which becomes due, then removes
-- their names in P:final.
--@keys meta records*
--@args gen first
-- first: bucket of the first key in KEYS. If `recs` does not exist, there are no older buckets.
-- Returns {OK, number of buckets freed}, or GONE.
--@include ../lanes/clock.lua
--@include ../stored/add-bytes.lua
local BUCKET_MS, LONGEST_MS = 21600000, 2592000000
local meta = redis.call('HMGET', KEY_META, 'gen', 'recs', 'retentionMs')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local keptMs = math.min(2 * tonumber(meta[3] or LONGEST_MS), LONGEST_MS) + BUCKET_MS
local first, freed, bytes = tonumber(ARG_FIRST), 0, 0
if meta[2] and tonumber(meta[2]) ~= first then return { 'OK', 0 } end
for at = FIRST_RECORDS, #KEYS do
  if now < (first + freed + 1) * BUCKET_MS + keptMs then break end
  bytes = bytes + tonumber(redis.call('HGET', KEYS[at], '') or '0')
  redis.call('UNLINK', KEYS[at])
  freed = freed + 1
end
addBytes(-bytes)
writeBytes()
if bytes > 0 then redis.call('HDEL', KEY_META, 'tidied') end
if freed > 0 or not meta[2] then redis.call('HSET', KEY_META, 'recs', string.format('%.0f', first + freed)) end
return { 'OK', freed }
