-- State of what is open, as text: i(n flight), r(etrying) or p(ending), then what P:try says of it. An event that its owner
-- ended during an attempt is not open; its claim (flag x) holds the lane until the attempt is over, see ended.lua.
local ENDED = 120
local function isEnded(claim) return string.byte(claim) == ENDED end
local function openText(isClaimed, tries)
  local attempts = tries and string.match(tries, '^%d+') or '0'
  return (isClaimed and 'i' or attempts ~= '0' and 'r' or 'p') .. (tries or '0 0 0')
end
