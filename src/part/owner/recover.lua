#!lua flags=allow-oom
-- Makes failed deliveries of a slot due immediately. A failed delivery is one that is waiting for a retry, or a first
-- delivery that has become a dead letter for the first time. Such dead letters are reopened with all of their retries.
-- The dead letters keep their place in the lane, which preserves the order. Dead letters that have been recovered
-- before, and dead replays, are not changed. Only a replay can deliver their events again.
--@keys meta log keys subs claims lanes pending waiting turns retries tries off counts final channel records*
--@args gen slot ...
-- More: (ref, replay or '', index of the records of its ref in the list)*, at most 200
-- Returns {OK, how many of them, how many were not looked at} or GONE. What ended otherwise, is under way, or was
-- removed by retention is left alone.
--@include ../lanes/clock.lua
--@include ../lanes/refs.lua
--@include ../lanes/lanes.lua
--@include ../lanes/counts.lua
--@include ../lanes/tries.lua
--@include ../lanes/failed.lua
--@include ../lanes/message.lua
--@include ../stored/add-bytes.lua
--@include ../stored/open-cost.lua
--@include ../records/records.lua
--@include ../gate/activations.lua
--@include ../inbox/permission.lua
--@include parking.lua
--@include requeue.lua
--@include reopening-lane.lua
--@include taking-records.lua
local MOST_READ = 1048576
local meta = redis.call('HMGET', KEY_META, 'gen', 'version', 'cut')
if meta[1] ~= ARG_GEN or redis.call('HEXISTS', KEY_SUBS, ARG_SLOT) == 0 then return { 'GONE' } end
-- The sweep will soon remove all events up to this one. It does not check them again.
local cut = string.match(meta[3] or '', '^%x+') or ''
readSlots({ ARG_SLOT })
local isUnorderedSlot = orderOf[ARG_SLOT] == 117

local function wake(groupLane, entry)
  local lane = isUnorderedSlot and entry or groupLane
  parkClosed(groupOf(groupLane))
  reopenLane(lane)
end

local recovered, reopened, done, read = 0, 0, 0, 0
for i = FIRST, #ARGV, 3 do
  local ref, replay, at = ARGV[i], ARGV[i + 1], FIRST_RECORDS + tonumber(ARGV[i + 2])
  local id = idOf(ref)
  local event = ref > cut and redis.call('XRANGE', KEY_LOG, id, id)[1]
  if event then
    local groupLane = ARG_SLOT .. event[2][2] .. (replay ~= '' and '\1' .. replay or '')
    local entry = groupLane .. '\0' .. ref
    local name = recordName(ref, replay ~= '' and replay or nil)
    read = read + #event[2][10]
    if redis.call('ZSCORE', KEY_PENDING, entry) then
      local attempts, lapses, due, failed = readTries(triesOf(entry))
      if attempts > 0 and due > now then
        writeTries(entry, attempts, lapses, now, failed)
        hasTries = true
        wake(groupLane, entry)
        recovered = recovered + 1
      end
    elseif replay == '' then
      local record, bytes = takeRecord(at, name, ARG_SLOT, 'x')
      read = read + bytes
      if record then
        -- The slot and the last character are not included.
        failedBytes[at] = (failedBytes[at] or 0) - failedCost(#record + 6)
        local age, attempts, note, failed = string.match(record, '^x(%x+) (%x+) ([^,]+)(.*)$')
        if string.sub(note, -2) ~= ' -' then failed = addFailed(failed, age .. ' ' .. note) end
        failed = RECOVERED .. tonumber(attempts, 16) .. failed
        addBytes(openCost(failed))
        writeTries(entry, 0, 0, 0, failed)
        hasTries = true
        redis.call('ZADD', KEY_PENDING, 0, entry)
        redis.call('ZREM', KEY_FINAL, ARG_SLOT .. name)
        wake(groupLane, entry)
        recovered, reopened = recovered + 1, reopened + 1
      end
    end
  end
  done = done + 1
  if read > MOST_READ then break end
end
if reopened > 0 then addCount(ARG_SLOT, 'x', -reopened) end
writeLanes()
writeCounts()
writeFailedBytes()
writeBytes()
tellWoken(meta[2])
return { 'OK', recovered, (#ARGV - FIRST + 1) / 3 - done }
