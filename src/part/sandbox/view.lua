#!lua flags=no-writes
-- Returns the activations of group keys and the data of slots in a part. All of them are read in a single step.
--@keys meta keys subs endpoints health skipped
--@args gen count ...
-- More: group keys, as many as `count`; then slots
-- Returns {OK, 1 if control data is complete, number of group keys read, for each of these its slots in one text,
--         (slot, row or '', health or '', 1 if it has an endpoint, end of its last pause that was skipped or '')* of
--         all these slots}, or GONE. If some of the group keys were not read, they would take too long and should be
--         included in the next call.
--@include ../gate/activations.lua
local FIELDS, SLOTS = 300, 500
local meta = redis.call('HMGET', KEY_META, 'ready', 'gen')
if meta[2] ~= ARG_GEN then return { 'GONE' } end
local isWhole = meta[1] == '1' and redis.call('HEXISTS', KEY_KEYS, '') == 1
local reply = { 'OK', isWhole and 1 or 0, 0 }
local slots, seen, fields = {}, {}, 0
local function ask(slot)
  if seen[slot] or #slots == SLOTS then return end
  seen[slot] = true
  slots[#slots + 1] = slot
end

ARG_COUNT = tonumber(ARG_COUNT)
for i = FIRST, FIRST + ARG_COUNT - 1 do
  local first = redis.call('HGET', KEY_KEYS, ARGV[i]) or ''
  local groups = groupsOf(first)
  fields = fields + groups
  if fields > FIELDS and i > FIRST then break end
  local active = {}
  for number = 1, groups do
    local list = number == 1 and first or redis.call('HGET', KEY_KEYS, nameOf(ARGV[i], number)) or ''
    list = string.sub(list, 1, #list - #list % ENTRY)
    active[number] = string.gsub(list, '(........)...............', '%1')
    for at = 1, #slots < SLOTS and #list or 0, ENTRY do ask(string.sub(list, at, at + 7)) end
  end
  reply[3] = reply[3] + 1
  reply[#reply + 1] = table.concat(active)
end
for i = FIRST + ARG_COUNT, #ARGV do ask(ARGV[i]) end
if #slots == 0 then return reply end
local rows, healths = redis.call('HMGET', KEY_SUBS, unpack(slots)), redis.call('HMGET', KEY_HEALTH, unpack(slots))
local skips = redis.call('HMGET', KEY_SKIPPED, unpack(slots))
for i, slot in ipairs(slots) do
  reply[#reply + 1] = slot
  reply[#reply + 1] = rows[i] or ''
  reply[#reply + 1] = healths[i] or ''
  reply[#reply + 1] = redis.call('HEXISTS', KEY_ENDPOINTS, slot)
  reply[#reply + 1] = skips[i] or ''
end
return reply
