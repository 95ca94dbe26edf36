#!lua flags=no-writes
-- Reads a single page of the control data of a part.
--@keys meta keys subs endpoints
--@args keys subs endpoints count
-- keys, subs, endpoints: cursors, or '-' if a hash is done. count: approximate number of fields of each.
-- Returns {OK, fields and values of meta, (next cursor, or '-' if done; fields and values) of each hash}
local function page(key, cursor)
  if cursor == '-' then return '-', {} end
  local found = redis.call('HSCAN', key, cursor, 'COUNT', ARG_COUNT)
  return found[1] == '0' and '-' or found[1], found[2]
end
local first, keys = page(KEY_KEYS, ARG_KEYS)
local second, subs = page(KEY_SUBS, ARG_SUBS)
local third, endpoints = page(KEY_ENDPOINTS, ARG_ENDPOINTS)
return { 'OK', redis.call('HGETALL', KEY_META), first, keys, second, subs, third, endpoints }
