-- The format that is used for events and their claims in pushes and replies. They are parsed by claims/message.ts.
--   event: ref, bytes of group key, metadata and body, claims separated by commas, line end, group key, metadata, body.
--   A body of more than 16 KiB is left out, and its bytes are negative. An event that is not in the log has x as bytes.
--   claim: slot, + if more events wait behind it, ~ without order, :attempts:lapses if there were any, !replay id.
-- A push begins with a line of: dispatcher (- for none), total claims and bytes pushed to it, 1 if lanes wait, number of
-- claimed lanes with new events, now, version of the rows. Then (bytes, space, lane)* for these lanes, then events.
local PUSHED_BODY = 16384

-- Adds the event text to `pieces`, which are joined only once: Lua hashes all bytes of each string that it creates.
-- `claims`: separated by commas. `body` is false if the event is not in the log. `rest`: the end of the body that is stored in the log.
local function addEvent(pieces, ref, groupKey, meta, body, rest, size, claims)
  local bytes = not body and 'x' or string.format('%d', size > PUSHED_BODY and -size or size)
  local head = string.format('%s %d %d %s ', ref, #groupKey, #meta, bytes)
  pieces[#pieces + 1] = head .. claims .. '\n' .. groupKey .. meta
  if body and size <= PUSHED_BODY then
    pieces[#pieces + 1] = body
    if rest ~= '' then pieces[#pieces + 1] = rest end
  end
end

-- Joins texts, which are changed by this. `table.concat` would create and hash several long strings along the way.
local function join(p)
  local AT_ONCE = 16
  repeat
    local n, m = #p, 0
    for i = n + 1, math.ceil(n / AT_ONCE) * AT_ONCE do p[i] = '' end
    for i = 1, n, AT_ONCE do
      m = m + 1
      p[m] = p[i] .. p[i + 1] .. p[i + 2] .. p[i + 3] .. p[i + 4] .. p[i + 5] .. p[i + 6] .. p[i + 7]
        .. p[i + 8] .. p[i + 9] .. p[i + 10] .. p[i + 11] .. p[i + 12] .. p[i + 13] .. p[i + 14] .. p[i + 15]
    end
    for i = m + 1, #p do p[i] = nil end
  until m <= 1
  return p[1] or ''
end

local function claimText(slot, behind, unordered, tries, replay)
  return slot .. (behind and '+' or '') .. (unordered and '~' or '') .. tries .. (replay and '!' .. replay or '')
end

local function pushHead(dispatcher, claims, bytes, waiting, behind, version)
  local counts = string.format(' %d %d %d %d %d ', claims, bytes, waiting, behind, now)
  return dispatcher .. counts .. version .. '\n'
end
