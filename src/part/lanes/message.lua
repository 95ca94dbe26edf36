-- The format that is used for events and their claims in pushes and replies. They are parsed by claims/message.ts.
--   event: ref, bytes of group key, metadata and body, claims separated by commas, line end, group key, metadata, body.
--   A body of more than 16 KiB is left out, and its bytes are negative. An event that is not in the log has x as bytes.
--   claim: slot, + if more events wait behind it, ~ without order, :attempts:lapses if there were any, !replay id.
-- A push begins with a line of: dispatcher (- for none), total claims and bytes pushed to it, 1 if lanes wait, number of
-- claimed lanes with new events, now, version of the rows. Then (bytes, space, lane)* for these lanes, then events.
local PUSHED_BODY = 16384

local function eventText(ref, groupKey, meta, body, size, claims)
  local head = ref .. ' ' .. #groupKey .. ' ' .. #meta .. ' '
  local bytes = size
  if not body then bytes, body = 'x', ''
  elseif size > PUSHED_BODY then bytes, body = '-' .. size, '' end
  return head .. bytes .. ' ' .. table.concat(claims, ',') .. '\n' .. groupKey .. meta .. body
end

local function claimText(slot, behind, unordered, tries, replay)
  return slot .. (behind and '+' or '') .. (unordered and '~' or '') .. tries .. (replay and '!' .. replay or '')
end

local function pushHead(dispatcher, claims, bytes, waiting, behind, version)
  local counts = string.format(' %.0f %.0f %d %d %.0f ', claims, bytes, waiting, behind, now)
  return dispatcher .. counts .. version .. '\n'
end
