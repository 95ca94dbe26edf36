#!lua flags=no-writes
-- Whether a subscription may be given events of these group keys now.
-- KEYS  1 I:meta  2 I:act  3 I:s:<sub>
-- ARGV  1 inc  2.. group keys ('' is that of test events, and always active)
-- Returns {OPEN, active (1|0)*} or one word: CLOSED (missing is closed), PENDING, REVOKED, GONE, PAUSED (covered or
--         suspended).
--@include permission
local word = permission(KEYS[1], KEYS[3], ARGV[1])
if word then return { word } end
local out = { 'OPEN' }
for i = 2, #ARGV do out[i] = ARGV[i] == '' and 1 or redis.call('HEXISTS', KEYS[2], ARGV[i]) end
return out
