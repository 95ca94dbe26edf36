-- State of what is open, as text: i(n flight), r(etrying) or p(ending), then what P:try says of it.
local function openText(isClaimed, tries)
  local attempts = tries and string.match(tries, '^%d+') or '0'
  return (isClaimed and 'i' or attempts ~= '0' and 'r' or 'p') .. (tries or '0 0 0')
end
