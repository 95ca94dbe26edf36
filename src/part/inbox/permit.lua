#!lua flags=no-writes
-- Whether a slot may be given events of these group keys now.
--@keys meta keys subs
--@args gen slot ...
-- More: group keys; '' is that of test events, and always active.
-- Returns {OK, (ref since which it is active, or '')* in order}, or one word: CLOSED (missing is closed), GONE, PAUSED.
--@include ../gate/activations.lua
--@include permission.lua
local word = permissionOf(ARG_SLOT)
if word then return { word } end
local out = { 'OK' }
for i = FIRST, #ARGV do out[#out + 1] = ARGV[i] == '' and string.rep('0', 15) or activeSince(ARG_SLOT, ARGV[i]) or '' end
return out
