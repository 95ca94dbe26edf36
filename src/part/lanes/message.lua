-- The format that is used for events and their claims in pushes and replies. claims/message.ts parses this format.
--   event: ref, bytes of group key, metadata and body, claims separated by commas, line end, group key, metadata, body.
--   A body of more than 16 KiB is left out, and its bytes are negative. An event that is not in the log has x as bytes.
--   claim: slot, + if more events wait behind it, ~ without order, :attempts:lapses if there were any, !replay id.
-- A push begins with a line of: dispatcher (- for none), total claims and bytes pushed to it, 1 if lanes wait, number
-- of claimed lanes with new events, now, version of the rows. Then (bytes, space, lane)* for these lanes, then events.
local PUSHED_BODY = 16384

-- Adds the event text to `pieces`, which are joined only once: Lua hashes all bytes of each string that it creates.
-- `claims`: separated by commas. `body` is false if the event is not in the log. `rest`: the end of the body that is
-- stored in the log.
local function addEvent(pieces, ref, groupKey, meta, body, rest, size, claims)
  local bytes = not body and 'x' or string.format('%d', size > PUSHED_BODY and -size or size)
  local head = string.format('%s %d %d %s ', ref, #groupKey, #meta, bytes)
  pieces[#pieces + 1] = head .. claims .. '\n' .. groupKey .. meta
  if body and size <= PUSHED_BODY then
    pieces[#pieces + 1] = body
    if rest ~= '' then pieces[#pieces + 1] = rest end
  end
end

local function claimText(slot, behind, unordered, tries, replay)
  return slot .. (behind and '+' or '') .. (unordered and '~' or '') .. tries .. (replay and '!' .. replay or '')
end

local function pushHead(dispatcher, claims, bytes, waiting, behind, version)
  local counts = string.format(' %d %d %d %d %d ', claims, bytes, waiting, behind, now)
  return dispatcher .. counts .. version .. '\n'
end
