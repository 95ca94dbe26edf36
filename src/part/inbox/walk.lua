#!lua flags=no-writes
-- Returns the names of the events of a slot. For a replay, this is ref:replay. For a first delivery, it is the ref.
--@keys meta log subs lists final claims pending tries counts
--@args gen slot source from to reverse count
-- source: listed (events within the retention), final (dead, skipped, and expired events and replays), or open (all
--         open events and replays, in no order).
-- from, to: range of names, without `to`. Not used by open. reverse: 1 for newest first.
-- Returns {OK, names separated by line ends}; for open {OK, (name, group key, state as in details.lua)*}; or one word:
--         GONE, MANY (more than `count` are open).
--@include ../lanes/refs.lua
--@include names.lua
--@include ../lists/packing.lua
--@include ../owner/ended.lua
--@include open-state.lua
local MOST_CLAIMS = 2000
if redis.call('HGET', KEY_META, 'gen') ~= ARG_GEN then return { 'GONE' } end
if redis.call('HEXISTS', KEY_SUBS, ARG_SLOT) == 0 then return { 'GONE' } end
local count, isReverse = tonumber(ARG_COUNT), ARG_REVERSE == '1'

local first, next, head
local function chunkAt(number)
  if number == next then return string.sub(head, HEAD_BYTES + 1) end
  return redis.call('HGET', KEY_LISTS, ARG_SLOT .. '\0' .. number) or ''
end

-- Returns the last chunk with a first ref that is not after `name`.
local function chunkOf(name)
  local low, high = first, next
  while low < high do
    local middle = math.ceil((low + high) / 2)
    local chunk = chunkAt(middle)
    if #chunk > 0 and unpackRef(chunk, 1) > name then high = middle - 1 else low = middle end
  end
  return low
end

local function walkListed()
  head = redis.call('HGET', KEY_LISTS, ARG_SLOT)
  local oldest = redis.call('XRANGE', KEY_LOG, '-', '+', 'COUNT', 1)[1]
  if not head or not oldest then return {} end
  first, next = struct.unpack('>I4I4', head)
  local from, to, refs = refOf(oldest[1]), ARG_TO, {}
  if ARG_FROM > from then from = ARG_FROM end
  local number, step = chunkOf(isReverse and to or from), isReverse and -1 or 1
  while number >= first and number <= next and #refs < count do
    local chunk = chunkAt(number)
    local begin, till = 1, #chunk - REF_BYTES + 1
    if isReverse then begin, till = till, begin end
    local passed = false
    for at = begin, till, step * REF_BYTES do
      local ref = unpackRef(chunk, at)
      passed = passed or (isReverse and ref < from) or (not isReverse and ref >= to)
      if not passed and ref >= from and ref < to and #refs < count then refs[#refs + 1] = ref end
    end
    if passed then break end
    number = number + step
  end
  return refs
end

local function walkFinal()
  local command, from, to = 'ZRANGEBYLEX', '[' .. ARG_SLOT .. ARG_FROM, '(' .. ARG_SLOT .. ARG_TO
  if isReverse then command, from, to = 'ZREVRANGEBYLEX', to, from end
  local names = redis.call(command, KEY_FINAL, from, to, 'LIMIT', 0, count)
  for i, name in ipairs(names) do names[i] = string.sub(name, 9) end
  return names
end

-- Returns all entries that have been claimed. If there are too many claims in the part to read all of them, it returns
-- nil.
local function claimedEntries()
  local flight = string.match(redis.call('HGET', KEY_COUNTS, ARG_SLOT) or '0', '^%d+')
  if flight == '0' then return {} end
  if redis.call('HLEN', KEY_CLAIMS) > MOST_CLAIMS then return nil end
  local entries, all = {}, redis.call('HGETALL', KEY_CLAIMS)
  for i = 1, #all, 2 do
    local lane, claim = all[i], all[i + 1]
    if slotOf(lane) == ARG_SLOT and not isEnded(claim) then
      entries[#entries + 1] = entryOf(lane, string.sub(claim, 2, 16))
    end
  end
  return entries
end

local function walkOpen()
  local from, to = '[' .. ARG_SLOT, '(' .. ARG_SLOT .. '\255'
  if redis.call('ZLEXCOUNT', KEY_PENDING, from, to) > count then return { 'MANY' } end
  local entries = claimedEntries()
  if not entries then return { 'MANY' } end
  local claimed, triesAt, out = #entries, {}, { 'OK' }
  for _, entry in ipairs(redis.call('ZRANGEBYLEX', KEY_PENDING, from, to)) do entries[#entries + 1] = entry end
  readFields(KEY_TRIES, entries, triesAt)
  for i, entry in ipairs(entries) do
    local replay = replayOf(entry)
    local ref = string.sub(entry, -15)
    out[#out + 1] = replay and (ref .. ':' .. replay) or ref
    out[#out + 1] = string.sub(groupOf(entry), 9)
    out[#out + 1] = openText(i <= claimed, triesAt[entry])
  end
  return out
end

if ARG_SOURCE == 'open' then return walkOpen() end
return { 'OK', table.concat(ARG_SOURCE == 'final' and walkFinal() or walkListed(), '\n') }
