#!lua flags=no-writes
-- Reads when the oldest events were accepted that wait for subscriptions: of their lanes, and of the log where they are behind.
--@keys meta log positions pending
--@args gen limit ...
-- limit: references of a subscription that are looked at. More: (slot, ref that it is known to be settled up to or '')*
-- Returns {OK, (ms of the oldest event that was not routed or '', ms of the oldest that is open or '', 1 where that event is
--         open and 0 where only nothing older is, settled up to)*}, or GONE.
-- Few open ones: all are looked at. Many: the log is, in order of time, as far as the limit reaches.
--@include ../lanes/refs.lua
local PAGE = 16
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

-- Walks the log from `settled`.
local function walk(slot, settled)
  local from, looked, ms = settled == '' and '-' or '(' .. idOf(settled), 0, ''
  while looked < limit do
    local page = redis.call('XRANGE', KEY_LOG, from, '+', 'COUNT', PAGE)
    for _, each in ipairs(page) do
      local ref = refOf(each[1])
      ms = msText(ref)
      if redis.call('ZSCORE', KEY_PENDING, slot .. each[2][2] .. '\0' .. ref) then return ms, 1, settled end
      settled, looked = ref, looked + 1
    end
    if #page < PAGE then break end
    from = '(' .. page[PAGE][1]
  end
  return ms, 0, settled
end

for i = FIRST, #ARGV, 2 do
  local slot, settled = ARGV[i], ARGV[i + 1]
  local open = redis.call('ZRANGEBYLEX', KEY_PENDING, '[' .. slot, '(' .. slot .. '\255', 'LIMIT', 0, limit + 1)
  local ms, exact = '', 1
  if #open > limit then
    ms, exact, settled = walk(slot, settled)
  elseif #open > 0 then
    local oldest
    for _, entry in ipairs(open) do
      local ref = string.sub(entry, -15)
      if not oldest or ref < oldest then oldest = ref end
    end
    ms, settled = msText(oldest), ''
  end
  out[#out + 1] = unroutedOf(slot)
  out[#out + 1] = ms
  out[#out + 1] = exact
  out[#out + 1] = settled
end
return out
