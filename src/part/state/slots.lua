#!lua flags=no-writes
-- Reads how deliveries of slots go, and the health of their endpoints.
--@keys meta subs counts deadLetters health
--@args gen ...
-- More: slots, at most 500
-- Returns {OK, (counters of lanes/counts.lua, dead letters, health of claims/health.lua; each '' where there is nothing, the
--         first - where the slot has no row)*}, or GONE.
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
