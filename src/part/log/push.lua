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

-- Sends the events that were claimed, and what other dispatchers need to know. `events`: the messages of the events.
-- `push`: dispatcher (false if nothing was pushed), to (its entry in P:ready), pushed (number of claims), bytes, behind
-- (texts of lanes with waiting events), isWaiting (whether a dispatcher should look for work), version of the part.
local function pushEvents(events, push)
  local to, claims, total = push.to, 0, 0
  if push.dispatcher then
    to.held, to.pushed = to.held + push.pushed, to.pushed + push.pushed
    claims, total = to.pushed, to.bytes + push.bytes
    to.room, to.bytes = to.room - push.bytes, total
  end
  local waiting, version = push.isWaiting and 1 or 0, push.version or '0'
  local head = pushHead(push.dispatcher or '-', claims, total, waiting, #push.behind, version)
  table.insert(events, 1, head .. table.concat(push.behind))
  local heard = redis.call('SPUBLISH', KEY_CHANNEL, join(events))
  -- There is no subscriber for this channel. Nothing will be pushed until the dispatcher has made its next exchange.
  if heard == 0 and push.dispatcher then to.room = 0 end
  if push.dispatcher then writeReady(push.dispatcher, to) end
end
