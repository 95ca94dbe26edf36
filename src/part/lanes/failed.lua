-- Adds a failed attempt to the attempts of an event (see tries.lua). The oldest attempt is removed. If the event was
-- recovered, its mark is kept.
local RECOVERED, MOST_FAILED = '*', 20
local function withoutOldest(failed) return (string.gsub(failed, '^(%*?%d*),[^,]*', '%1')) end
local function addFailed(failed, text)
  failed = failed .. ',' .. text
  if select(2, string.gsub(failed, ',', '')) > MOST_FAILED then return withoutOldest(failed) end
  return failed
end
