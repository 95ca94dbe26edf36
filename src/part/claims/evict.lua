#!lua flags=allow-oom
-- Takes over the claims of a dispatcher that is not responding any more. Each call processes a single page. After this,
-- their lanes are waiting. If an event has not ended, a lapse is counted for it. The dispatcher is listed as lapsed
-- (exchange.lua) until the last page, so that another caller can continue. If it has made an exchange since the first
-- page, pages that were read before can have new claims.
--@unconfirmed
--@keys meta log subs claims lanes pending waiting turns retries tries counts ready channel
--@args gen dispatcher cursor number
-- number: '' for the first page, and what it returned for the others.
-- Returns {OK, cursor ('0': done), number of claims, number of its last exchange or ''}, or one word: GONE, HELD (the
-- dispatcher is active, or was active since the first page).
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/tries.lua
--@include ../lanes/message.lua
--@include ../lanes/ready.lua
--@include ../owner/ended.lua
local meta = redis.call('HMGET', KEY_META, 'gen', 'version')
if meta[1] and meta[1] ~= ARG_GEN then return { 'GONE' } end
local r = readReady(redis.call('HGET', KEY_READY, ARG_DISPATCHER))
local number = r and string.format('%d', r.number) or ''
if r and r.untilMs > now then return { 'HELD' } end
if r and ARG_CURSOR ~= '0' and number ~= ARG_NUMBER then return { 'HELD' } end
local page = redis.call('HSCAN', KEY_CLAIMS, ARG_CURSOR, 'COUNT', 256)
local lanes, slots = {}, {}
for i = 1, #page[2], 2 do
  local lane, claim = page[2][i], page[2][i + 1]
  if string.sub(claim, 17) == ARG_DISPATCHER then
    lanes[#lanes + 1] = lane
    slots[#slots + 1] = slotOf(lane)
    claimOf[lane] = claim
  end
end
readSlots(slots)
for _, lane in ipairs(lanes) do
  local slot, claim = slotOf(lane), claimOf[lane]
  local ref = string.sub(claim, 2, 16)
  local entry = entryOf(lane, ref)
  local attempts, lapses, due, failed = readTries(triesOf(entry))
  setClaim(lane, false)
  leaveFlight(slot)
  local class = classOf(attempts, lapses + 1)
  if isEnded(claim) then
    -- The claimed event has ended, so the next event of the lane is up. This event can wait for a retry, because
    -- earlier events can be recovered.
    local head = headOf(lane)
    local headAttempts, headLapses, headDue = readTries(head and triesOf(head))
    if headDue > now then retryLane(lane, headDue)
    elseif head then waitLane(lane, classOf(headAttempts, headLapses), now) end
  else
    writeTries(entry, attempts, lapses + 1, due, failed)
    addEntry(entry)
    -- First attempts are sorted by the time of the event, because this event has been waiting for the longest time.
    waitLane(lane, class, class == FIRST_ATTEMPT and msOf(ref) or now)
  end
  if sendOf[slot] ~= 111 then waitingOf[slot] = STOPPED
  elseif waitingOf[slot] ~= STOPPED then waitingOf[slot] = SOME end
  if waitingOf[slot] == SOME then giveTurn(slot) end
end
writeLanes()
writeCounts()
if page[1] == '0' then redis.call('HDEL', KEY_READY, ARG_DISPATCHER) end
if #lanes > 0 then redis.call('SPUBLISH', KEY_CHANNEL, pushHead('-', 0, 0, 1, 0, meta[2] or '0')) end
return { 'OK', page[1], #lanes, number }
