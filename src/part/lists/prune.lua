#!lua flags=allow-oom
-- Removes what retention removed from lists of slots.
--@keys meta log lists
--@args gen keepsFrom ...
-- keepsFrom: the first ref that stays; g for none, of slots that were deleted. More: slots, at most 64
-- Returns {OK, number of slots with more to do}, or GONE.
--@include ../lanes/refs.lua
--@include packing.lua
--@include pruning.lua
if redis.call('HGET', KEY_META, 'gen') ~= ARG_GEN then return { 'GONE' } end
local more = 0
for i = FIRST, #ARGV do
  if pruneList(ARGV[i], ARG_KEEPS_FROM) then more = more + 1 end
end
return { 'OK', more }
