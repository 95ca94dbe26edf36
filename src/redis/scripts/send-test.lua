#!lua
-- Puts a test event into a lane of its own: the group key '', which no event of a queue has. It needs no activation.
-- KEYS  1 I:meta  2 I:s:<sub>  3 X:pend  4 X:due
-- ARGV  1 nowMs  2 inc  3 ref  4 how many may be open at once
-- Returns OK (also when it is there already) or one word: CLOSED (missing is closed), PENDING, REVOKED, GONE, PAUSED
--         (covered or suspended), PULLED (it has no endpoint), HELD (its endpoint may not be called), MANY.
--@include lanes
--@include permission
local word = permission(KEYS[1], KEYS[2], ARGV[2])
if word then return word end
local s = redis.call('HMGET', KEYS[2], 'endpoint', 'send', 'unordered')
if s[2] ~= 'open' then return s[1] and 'HELD' or 'PULLED' end
local member = NUL .. ARGV[3]
if redis.call('ZSCORE', KEYS[3], member) then return 'OK' end
if redis.call('ZLEXCOUNT', KEYS[3], '[' .. NUL, '(\1') >= tonumber(ARGV[4]) then return 'MANY' end
redis.call('ZADD', KEYS[3], 0, member)
redis.call('ZADD', KEYS[4], 'NX', ARGV[1], s[3] and member or '')
redis.call('HINCRBY', KEYS[2], 'n:tested', 1)
return 'OK'
