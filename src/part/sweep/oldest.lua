#!lua flags=no-writes
-- Returns the time at which the oldest event that is waiting for a subscription was accepted. The event is either in
-- its lanes or, if the subscription is behind, in the log.
--@keys meta log positions pending counts claims
--@args gen limit ...
-- limit: number of references of a subscription to look at. 0 reads the log only.
-- More: (slot, ref up to which everything is known to be settled, or '')*
-- Returns {OK, (time of the oldest event not routed in ms or '', time of the oldest open event in ms or '', 1 if that
--         event is open or 0 if it only is a lower bound, ref up to which everything is settled)*}, or GONE. If there
--         are only a few open references, all of them are read. Otherwise, the log is read in the order of time, up to
--         the limit. If there is an attempt in progress for an event, it is also considered to be open, because it
--         might have to wait again. If there are too many claims in the part to read all of them, the oldest event in
--         the log is used for the claimed events of a subscription.
--@include ../lanes/refs.lua
--@include ../inbox/names.lua
--@include ../owner/ended.lua
local PAGE, MOST_CLAIMS = 16, 2000
local meta = redis.call('HMGET', KEY_META, 'gen', 'hold', 'pos')
if meta[1] ~= ARG_GEN then return { 'GONE' } end
local limit, out, firstAfter = tonumber(ARG_LIMIT), { 'OK' }, {}
local function msText(ref) return string.format('%.0f', msOf(ref)) end

local function unroutedOf(slot)
  local position = redis.call('HGET', KEY_POSITIONS, slot) or meta[2] and (meta[3] or NO_REF)
  if not position then return '' end
  if firstAfter[position] == nil then
    local first = redis.call('XRANGE', KEY_LOG, '(' .. idOf(position), '+', 'COUNT', 1)[1]
    firstAfter[position] = first and msText(refOf(first[1])) or ''
  end
  return firstAfter[position]
end

-- The entries of all slots that have been claimed. If there are too many of them, this is false.
local claims
local function readClaims()
  if claims ~= nil then return end
  claims = redis.call('HLEN', KEY_CLAIMS) <= MOST_CLAIMS and {}
  local all = claims and redis.call('HGETALL', KEY_CLAIMS) or {}
  for i = 1, #all, 2 do
    if not isEnded(all[i + 1]) then claims[entryOf(all[i], string.sub(all[i + 1], 2, 16))] = true end
  end
end

local function isClaimed(entry) return claims and claims[entry] end

-- Reads the log, starting at `settled`.
local function walk(slot, settled)
  local from, looked, ms = settled == '' and '-' or '(' .. idOf(settled), 0, ''
  while looked < limit do
    local page = redis.call('XRANGE', KEY_LOG, from, '+', 'COUNT', PAGE)
    for _, each in ipairs(page) do
      local ref = refOf(each[1])
      ms = msText(ref)
      local entry = slot .. each[2][2] .. '\0' .. ref
      if isClaimed(entry) or redis.call('ZSCORE', KEY_PENDING, entry) then return ms, 1, settled end
      settled, looked = ref, looked + 1
    end
    if #page < PAGE then break end
    from = '(' .. page[PAGE][1]
  end
  return ms, 0, settled
end

-- Returns the time at which the oldest open event was accepted, whether this event is open, and the position up to
-- which the slot is settled.
local function openOf(slot, settled)
  local flight = string.match(redis.call('HGET', KEY_COUNTS, slot) or '0', '^%d+')
  if flight ~= '0' then readClaims() end
  if flight ~= '0' and not claims then
    local first = redis.call('XRANGE', KEY_LOG, '-', '+', 'COUNT', 1)[1]
    return first and msText(refOf(first[1])) or '', 0, settled
  end
  local open = redis.call('ZRANGEBYLEX', KEY_PENDING, '[' .. slot, '(' .. slot .. '\255', 'LIMIT', 0, limit + 1)
  if #open > limit then return walk(slot, settled) end
  local oldest
  local function note(entry)
    local ref = string.sub(entry, -15)
    if not oldest or ref < oldest then oldest = ref end
  end
  for _, entry in ipairs(open) do note(entry) end
  for entry in pairs(flight ~= '0' and claims or {}) do
    if slotOf(entry) == slot then note(entry) end
  end
  if not oldest then return '', 1, settled end
  return msText(oldest), 1, ''
end

for i = FIRST, #ARGV, 2 do
  local slot, settled = ARGV[i], ARGV[i + 1]
  out[#out + 1] = unroutedOf(slot)
  local ms, exact = '', 1
  if limit > 0 then ms, exact, settled = openOf(slot, settled) end
  out[#out + 1] = ms
  out[#out + 1] = exact
  out[#out + 1] = settled
end
return out
