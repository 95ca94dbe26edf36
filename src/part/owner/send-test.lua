#!lua
-- Adds a test event to a separate lane, which is the slot itself. A test event does not need an activation and is not
-- included in a log.
--@keys meta log keys subs endpoints claims lanes pending waiting turns retries tries counts health channel chunks*
--@args gen slot number most ttlMs
-- chunks: one key at most. The event is then sent once for this key: its ref is kept for ttlMs, and returned again.
-- number: 0 to 31, tells those of one millisecond apart. most: how many may be open at once.
-- Returns {OK, ref} or one word: CLOSED (missing is closed), GONE, PAUSED, PULLED (it has no endpoint), HELD (its
--         endpoint may not be called), MANY.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/tries.lua
--@include ../lanes/message.lua
--@include ../gate/activations.lua
--@include ../inbox/permission.lua
--@include requeue.lua
--@include reopening-lane.lua
local at = FIRST_CHUNKS
local before = KEYS[at] and redis.call('HGET', KEYS[at], 'ref')
if before then return { 'OK', before } end
local word = permissionOf(ARG_SLOT)
if word then return { word } end
readSlots({ ARG_SLOT })
if redis.call('HEXISTS', KEY_ENDPOINTS, ARG_SLOT) == 0 then return { 'PULLED' } end
-- The endpoint is disabled in its health first (see claims/health.lua). The row of the slot changes when the controller
-- has noticed.
local health = redis.call('HGET', KEY_HEALTH, ARG_SLOT) or ''
local disabled = tonumber(string.match(health, '^%d+ %d+ %d+ %d+ (%d+)'))
local isDisabled = disabled and tonumber(enabledOf[ARG_SLOT]) <= disabled
if sendOf[ARG_SLOT] ~= 111 or isDisabled then return { 'HELD' } end
local ref = string.format('%011x%04x', now, LAST_SEQUENCE + 1 + tonumber(ARG_NUMBER))
local entry = ARG_SLOT .. '\0' .. ref
local lane = orderOf[ARG_SLOT] == 117 and entry or ARG_SLOT
local open, most = redis.call('ZLEXCOUNT', KEY_PENDING, '[' .. ARG_SLOT .. '\0', '(' .. ARG_SLOT .. '\1'), tonumber(ARG_MOST)

-- We only need to look through the claims if there could be too many of them for this slot. If there is no order, each
-- of them has a separate lane.
local function countClaimed()
  local count, cursor = redis.call('HEXISTS', KEY_CLAIMS, ARG_SLOT), '0'
  repeat
    local page = redis.call('HSCAN', KEY_CLAIMS, cursor, 'MATCH', ARG_SLOT .. '\0*', 'COUNT', 4096)
    count, cursor = count + #page[2] / 2, page[1]
  until cursor == '0'
  return count
end
if open >= most or (open + flightOf[ARG_SLOT] >= most and open + countClaimed() >= most) then return { 'MANY' } end
if KEYS[at] then
  redis.call('HSET', KEYS[at], 'ref', ref)
  redis.call('PEXPIRE', KEYS[at], ARG_TTL_MS)
end
redis.call('ZADD', KEY_PENDING, 0, entry)
reopenLane(lane)
writeLanes()
writeCounts()
tellWoken(redis.call('HGET', KEY_META, 'version'))
return { 'OK', ref }
