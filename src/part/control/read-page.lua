#!lua flags=no-writes
-- Reads a single page of a part's control data.
--@keys meta keys subs endpoints off
--@args keys subs endpoints off count
-- keys, subs, endpoints, off: cursors, or '-' if a hash is done. count: approximate number of fields of each.
-- Returns {OK, fields and values of meta, (next cursor, or '-' if done; fields and values) of each hash}. Of `off`,
--         there are only the fields of activated group keys whose lanes have not been unparked completely
--         (gate/gate.lua).
local function page(key, cursor)
  if cursor == '-' then return '-', {} end
  local found = redis.call('HSCAN', key, cursor, 'COUNT', ARG_COUNT)
  return found[1] == '0' and '-' or found[1], found[2]
end
local first, keys = page(KEY_KEYS, ARG_KEYS)
local second, subs = page(KEY_SUBS, ARG_SUBS)
local third, endpoints = page(KEY_ENDPOINTS, ARG_ENDPOINTS)
local fourth, marks = page(KEY_OFF, ARG_OFF)
local unparking = {}
for i = 1, #marks, 2 do
  if string.byte(marks[i + 1]) == 50 then unparking[#unparking + 1] = marks[i] end
end
return { 'OK', redis.call('HGETALL', KEY_META), first, keys, second, subs, third, endpoints, fourth, unparking }
