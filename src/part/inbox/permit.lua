#!lua flags=no-writes
-- Checks if a slot is able to receive events with these group keys.
--@keys meta keys subs
--@args gen slot ...
-- More: group keys. '' is the group key of test events, and is always active.
-- Returns {OK, (ref since which it is active, or '')* in order}, or one word: CLOSED (control data is missing), GONE,
-- PAUSED.
--@include ../gate/activations.lua
--@include permission.lua
local word = permissionOf(ARG_SLOT)
if word then return { word } end
local out = { 'OK' }
for i = FIRST, #ARGV do out[#out + 1] = ARGV[i] == '' and string.rep('0', 15) or activeSince(ARG_SLOT, ARGV[i]) or '' end
return out
