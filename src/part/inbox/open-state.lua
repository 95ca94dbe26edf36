-- Returns the state of an open event as text. This is i(n flight), r(etrying) or p(ending), followed by its entry in
-- P:try or '0 0 0'.
local function openText(isClaimed, tries)
  local attempts = tries and string.match(tries, '^%d+') or '0'
  return (isClaimed and 'i' or attempts ~= '0' and 'r' or 'p') .. (tries or '0 0 0')
end
