-- A claim whose event was ended by its owner has the flag x. It holds its lane until the attempt is over, so that nothing of
-- the lane is sent beside it; whatever the attempt brings is too late. More may be behind it.
local ENDED = 120
local function isEnded(claim) return string.byte(claim) == ENDED end
local function markEnded(claim) return 'x' .. string.sub(claim, 2) end
