#!lua flags=no-writes
-- Returns what needs to be done by the sweep in a part, and when it needs to be done.
--@keys meta log pending counts final off dropped
--@args gen
-- Returns {OK, now, retentionMs or '', ref of the oldest event or '', hours with ids (`first last`) or '', first bucket
--         of records or '', time of the last tidying of slots (ms) or '', time at which the next deleted slot is due
--         (ms) or '', 1 if slots have something to tidy}, or GONE.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
local meta = redis.call('HMGET', KEY_META, 'gen', 'retentionMs', 'ids', 'recs', 'tidied')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local first = redis.call('XRANGE', KEY_LOG, '-', '+', 'COUNT', 1)[1]
local dropped = redis.call('ZRANGE', KEY_DROPPED, 0, 0, 'WITHSCORES')[2]
local tidy = redis.call('EXISTS', KEY_PENDING, KEY_COUNTS, KEY_FINAL, KEY_OFF) > 0
return {
  'OK', now, meta[2] or '', first and refOf(first[1]) or '', meta[3] or '', meta[4] or '', meta[5] or '', dropped or '',
  tidy and 1 or 0,
}
