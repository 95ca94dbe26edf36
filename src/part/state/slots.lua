#!lua flags=no-writes
-- Returns the counters for the deliveries of slots, and the health of their endpoints.
--@keys meta subs counts deadLetters health
--@args gen ...
-- More: slots, at most 500
-- Returns {OK, (counters of lanes/counts.lua, dead letters, health of claims/health.lua)*}, or GONE. Each of them is ''
--         if there is none, and the counters are - if the slot has no row.
if redis.call('HGET', KEY_META, 'gen') ~= ARG_GEN then return { 'GONE' } end
local function readAll(key) return redis.call('HMGET', key, unpack(ARGV, FIRST)) end
local rows, counts = readAll(KEY_SUBS), readAll(KEY_COUNTS)
local letters, healths = readAll(KEY_DEAD_LETTERS), readAll(KEY_HEALTH)
local out = { 'OK' }
for i, row in ipairs(rows) do
  out[#out + 1] = row and (counts[i] or '') or '-'
  out[#out + 1] = row and letters[i] or ''
  out[#out + 1] = row and healths[i] or ''
end
return out
