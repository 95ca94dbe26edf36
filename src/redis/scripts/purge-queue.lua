#!lua flags=allow-oom
-- Removes a queue that no object owns, unless it takes events, was made anew, or has something undelivered and events that
-- are younger than its retention.
-- KEYS  1 Q:meta  2 Q:m:gen  3 Q:behind  4.. all else that is to go
-- ARGV  1 fence  2 gen  3 nowMs  4 1: inboxes have open references to it  5 1 to only look
-- Returns OK, BUSY, or FENCED when a newer controller leads.
local m = redis.call('HMGET', KEYS[1], 'fence', 'gen', 'state', 'cur', 'retentionMs')
if m[1] and tonumber(m[1]) > tonumber(ARGV[1]) then return 'FENCED' end
if m[3] == 'open' or (m[2] and m[2] ~= ARGV[2]) then return 'BUSY' end
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
if newest then
  local keptFromMs = tonumber(ARGV[3]) - (tonumber(m[5]) or 2592000000)
  local young = tonumber(string.match(newest[1], '^%d+')) > keptFromMs
  local undelivered = ARGV[4] == '1'
    or redis.call('HLEN', KEYS[3]) > 0
    or #redis.call('XRANGE', KEYS[2], '(' .. (m[4] or '0-0'), '+', 'COUNT', 1) > 0
  if young and undelivered then return 'BUSY' end
end
if ARGV[5] ~= '1' then redis.call('UNLINK', unpack(KEYS)) end
return 'OK'
