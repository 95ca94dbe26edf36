-- If the event of a claim has ended during the attempt, the claim has the flag x. It keeps the lane until the attempt
-- has ended. As a result, no other event of this lane is sent at the same time. The attempt does not change the
-- outcome. There can be more events behind it.
local ENDED = 120
local function isEnded(claim) return string.byte(claim) == ENDED end
local function markEnded(claim) return 'x' .. string.sub(claim, 2) end
