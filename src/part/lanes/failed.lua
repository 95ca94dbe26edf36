-- Adds a failed attempt to the attempts of an event (see tries.lua). The oldest attempt is removed. If the event was
-- recovered, its mark is kept.
local RECOVERED, MOST_FAILED = '*', 20
local function addFailed(failed, text)
  failed = failed .. ',' .. text
  if select(2, string.gsub(failed, ',', '')) > MOST_FAILED then failed = string.gsub(failed, '^(%*?),[^,]*', '%1') end
  return failed
end
