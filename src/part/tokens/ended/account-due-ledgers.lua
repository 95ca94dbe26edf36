#!lua flags=allow-oom
-- Lists ledgers that ended more than a day ago, so that the caller can ask their parts if they still have them. Others
-- do not get them for a minute. The time of these ledgers is older than that of any end that is noted from now on.
--@keys ended
--@args most
-- Returns {OK, time that they have in A:ended now, part.ledger*}.
--@include ../../lanes/clock.lua
--@include ended-ledgers.lua
if isDue() == 0 then return { 'OK', '' } end
local last = string.format('%.0f', now - KEPT_MS)
local fields = redis.call('ZRANGEBYSCORE', KEY_ENDED, '-inf', last, 'LIMIT', 0, tonumber(ARG_MOST))
for _, field in ipairs(fields) do redis.call('ZADD', KEY_ENDED, last, field) end
return { 'OK', last, unpack(fields) }
