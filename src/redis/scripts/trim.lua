#!lua flags=allow-oom
-- Removes events of a queue that are older than retention, 1,000 a call, after the inboxes ended their references.
-- KEYS  1 Q:meta  2 Q:m:gen  3 Q:b:gen
-- ARGV  1 epoch of the owner  2 cut (stream id: everything before it goes)
-- Returns {MORE|DONE, removed} or {FENCED}.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return { 'FENCED' } end
local old = redis.call('XRANGE', KEYS[2], '-', '(' .. ARGV[2], 'COUNT', 1000)
if #old == 0 then return { 'DONE', 0 } end
local bytes = 0
for _, e in ipairs(old) do bytes = bytes + tonumber(e[2][4]) end
local last = old[#old][1]
for k = 2, 3 do
  redis.call('XTRIM', KEYS[k], 'MINID', last)
  redis.call('XDEL', KEYS[k], last)
end
redis.call('HINCRBY', KEYS[1], 'bytes', -bytes)
return { #old == 1000 and 'MORE' or 'DONE', #old }
