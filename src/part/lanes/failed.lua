-- Adds a failed attempt to those of an event (see tries.lua): the oldest one goes. The mark of a recovered event stays.
local RECOVERED, MOST_FAILED = '*', 20
local function addFailed(failed, text)
  failed = failed .. ',' .. text
  if select(2, string.gsub(failed, ',', '')) > MOST_FAILED then failed = string.gsub(failed, '^(%*?),[^,]*', '%1') end
  return failed
end
