#!lua flags=allow-oom
-- Removes a part of a stream. Until remove-ids.lua has finished, the `was` field of P:meta contains the generation for
-- which there may still be some data.
--@keys meta log body keys subs endpoints positions late claims lanes pending waiting turns retries tries off counts health dropped former final answers ready lists replays deadLetters reasons skips skipped records*
--@args fence gen
-- Returns {OK}, or FENCED if a newer controller leads. If P:meta has a different generation, this only removes the keys
-- of `gen`.
--@include ../lanes/clock.lua
--@include ../tokens/ledger.lua
--@include ../tokens/removing.lua
local meta = redis.call('HMGET', KEY_META, 'fence', 'gen')
if tonumber(meta[1] or '0') > tonumber(ARG_FENCE) then return { 'FENCED' } end
if meta[2] == ARG_GEN then
  removeMeta(ARG_FENCE, ARG_GEN)
end
for _, key in ipairs({
  KEY_LOG, KEY_BODY, KEY_KEYS, KEY_SUBS, KEY_ENDPOINTS, KEY_POSITIONS, KEY_LATE, KEY_CLAIMS, KEY_LANES, KEY_PENDING,
  KEY_WAITING, KEY_TURNS, KEY_RETRIES, KEY_TRIES, KEY_OFF, KEY_COUNTS, KEY_HEALTH, KEY_DROPPED, KEY_FINAL, KEY_ANSWERS,
  KEY_READY, KEY_LISTS, KEY_REPLAYS, KEY_DEAD_LETTERS, KEY_REASONS, KEY_SKIPS,
  KEY_SKIPPED, KEY_FORMER,
}) do redis.call('UNLINK', key) end
for at = FIRST_RECORDS, #KEYS do redis.call('UNLINK', KEYS[at]) end
return { 'OK' }
