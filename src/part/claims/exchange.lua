#!lua flags=allow-oom
-- Ends the attempts for any of the slots in a part, continues their lanes, and claims lanes that are waiting. All of
-- this is done for a single dispatcher.
--@unconfirmed
--@keys meta log body subs claims lanes pending waiting turns retries tries off counts health final answers deadLetters ready channel records*
--@args gen dispatcher number readyMs limit held lapsed seen seenBytes roomBytes most plain count ...
-- number: increases with each call of a dispatcher. limit: maximum number of its claims in this part. held: its claims,
-- including the ones that end in this call. lapsed: 1 if one of them lapsed twice or more. seen, seenBytes: claims and
-- bytes of the pushes that it has read. roomBytes: maximum bytes of unread pushes. most: maximum number of new claims.
-- plain, count: number of attempts that end (format: lib completing), followed by response bodies. If limit is 0, the
-- dispatcher stops, and the others are notified of the lanes that it leaves waiting.
-- Returns {word, now, claims and bytes ever pushed to it, letters (completing), due (ms of the next retry or '', what
--         waits aside), 1 where more may be claimed at once, version of the rows, slots whose endpoint this disabled,
--         dispatchers that stopped responding (evict them), hold or '', news of slots (format: lib news), pieces of
--         events (format: lib message)}.
--         Words: OK; CLOSED (control data is missing: ends attempts, claims nothing); HELD (four other dispatchers are
--         active: ends attempts, claims nothing). Or alone: GONE (another generation); LATE (a later call was
--         processed: no change).
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/tries.lua
--@include ../lanes/failed.lua
--@include ../lanes/set-back.lua
--@include ../lanes/message.lua
--@include ../lanes/ready.lua
--@include ../stored/add-bytes.lua
--@include ../stored/open-cost.lua
--@include ../records/records.lua
--@include ../records/late-attempt.lua
--@include ../../redis/scripts/lib/traffic.lua
local MOST_DISPATCHERS = 4
local meta = redis.call('HMGET', KEY_META, 'ready', 'gen', 'version', 'out', 'hold', 'back', 'bytes')
if meta[2] and meta[2] ~= ARG_GEN then return { 'GONE' } end
local plain, count, limit = tonumber(ARG_PLAIN), tonumber(ARG_COUNT), tonumber(ARG_LIMIT)

local own, lapsed, others, isSetBack = nil, {}, 0, false
local all = redis.call('HGETALL', KEY_READY)
for i = 1, #all, 2 do
  local r = readReady(all[i + 1])
  -- If a time is further in the future, the clock was set back.
  if r.untilMs > now + tonumber(ARG_READY_MS) then
    r.untilMs = now + tonumber(ARG_READY_MS)
    writeReady(all[i], r)
    isSetBack = true
  end
  if all[i] == ARG_DISPATCHER then own = r
  elseif r.untilMs <= now then lapsed[#lapsed + 1] = all[i]
  else others = others + 1 end
end
if own and tonumber(ARG_NUMBER) <= own.number then return { 'LATE' } end
-- A dispatcher has the claims that it reports, and all claims that have been pushed since then. The number of claims
-- corrects itself after lost messages.
local pushed = own and own.pushed or tonumber(ARG_SEEN)
local bytes = own and own.bytes or tonumber(ARG_SEEN_BYTES)
local held = math.max(0, tonumber(ARG_HELD) - plain - count + pushed - tonumber(ARG_SEEN))
local word = meta[1] ~= '1' and 'CLOSED' or not own and others >= MOST_DISPATCHERS and 'HELD' or 'OK'
local budget = word == 'OK' and math.max(0, math.min(limit - held, tonumber(ARG_MOST))) or 0
--@include taking.lua
--@include ../owner/ended.lua
--@include pace.lua
--@include health.lua
--@include answers.lua
--@include news.lua
--@include plain-deliveries.lua
--@include completing.lua
--@include claiming.lua
local letters, disabled = complete(FIRST, plain, count)
writeLanes()
if isSetBack then restartSlots() end
local isMoving = (isSetBack or meta[6]) and moveRetries(isSetBack and '-inf' or meta[6])
wakeDue()
local more = budget > taken and claim() or 0
local news = noteDeliveries()
writeCounts()
local changed = {}
if byteChange ~= 0 then changed = { 'bytes', changedBytes(meta[7]) } end
if delivered + missed > 0 then
  changed[#changed + 1] = 'out'
  changed[#changed + 1] = counted(meta[4], now, delivered, missed, 0)
end
if #changed > 0 then redis.call('HSET', KEY_META, unpack(changed)) end
if word == 'OK' then
  local unread = bytes - tonumber(ARG_SEEN_BYTES)
  local room = math.max(0, tonumber(ARG_ROOM_BYTES) - unread)
  local untilMs = now + tonumber(ARG_READY_MS)
  writeReady(ARG_DISPATCHER, {
    untilMs = untilMs, limit = limit, held = held + taken, pushed = pushed, room = room, bytes = bytes,
    number = tonumber(ARG_NUMBER),
  })
end
if limit == 0 and plain + count > 0 and redis.call('EXISTS', KEY_TURNS) == 1 then
  redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, 1, 0, meta[3] or '0'))
end
local due = redis.call('ZRANGE', KEY_RETRIES, '0', '0', 'WITHSCORES')[2] or ''
if isMoving or budget > taken and due ~= '' and tonumber(due) <= now then more = 1 end
return {
  word, now, pushed, bytes, letters, due, more, meta[3] or '0', table.concat(disabled, ' '), table.concat(lapsed, ' '),
  meta[5] or '', news, claimedEvents(),
}
