-- A claim has the flag x if its event ended during the attempt. It holds its lane until the attempt ends, so that no other event
-- of the lane is sent at the same time. The attempt does not change the outcome. More events may be behind it.
local ENDED = 120
local function isEnded(claim) return string.byte(claim) == ENDED end
local function markEnded(claim) return 'x' .. string.sub(claim, 2) end
