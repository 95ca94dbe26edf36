-- Whether an inbox's key is of the generation `inc`: what a subscription of the same name left behind is not its own.
local function isOf(inc, inboxKey)
  return inc == string.match(inboxKey, '%.([^.:]+):%a+$')
end
