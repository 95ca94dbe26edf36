#!lua flags=allow-oom
-- Counts what was routed by a part at the cost of an account. If the part needs tokens, they are granted. Both of them
-- are totals in the part's ledger, so each step can be repeated. If an old report is received, this is safe,
-- because it can only contain more tokens than there are.
--@keys meta seen hold short grants ended
--@args part queue ledger total given left need waits nowMs term
-- part: `ten:queue:gen:number`. queue: `ten:queue`. total, given, left: as the part reported them; left '' without a
-- bound.
-- need: what it has to have left; waits: 1 if an event waits for that. need -1: the ledger ended, nothing is left of
-- it.
-- term: as returned before the report was read, or ''.
-- Returns {OK, due, tokens ever granted to the ledger, 1 if the queue was short before}, or a word with nothing
-- granted:
--         {BUSY, due, parts that hold tokens}: take them back; {SHORT, due}: the account is spent; {CLOSED, due}:
--         nobody knows its plan. due: 1 if there are ledgers that may be forgotten.
--         {NEW, term}: the ledger is not known, or has ended, and nothing was counted. Read the report again, because
--         it may be a late one, and then repeat the call with this term.
-- Fields: A:seen: part.ledger → total that was counted (see also ended/ended-ledgers.lua); A:grants: part → ledger,
-- tokens ever granted to it; A:hold: part → tokens of these that were not routed yet, as far as is known. They are not
-- changed by replays.
--@include ../lanes/clock.lua
--@include ended/ended-ledgers.lua
--@include ../../redis/scripts/lib/balance.lua
local MOST, MOST_HOLDERS = 1000, 64
local total, need = tonumber(ARG_TOTAL), tonumber(ARG_NEED)
local field = ARG_PART .. '.' .. ARG_LEDGER
local known = redis.call('HGET', KEY_SEEN, field)
local ledger, given = string.match(redis.call('HGET', KEY_GRANTS, ARG_PART) or '', '^(%S+) (%d+)$')
local endedAt = ledger ~= ARG_LEDGER and redis.call('ZSCORE', KEY_ENDED, field)
if need >= 0 and (endedAt or not known) or total > 0 and not endedAt and not known then
  local term = endedAt and 'ended ' .. endedAt or redis.call('HGET', KEY_SEEN, 'term') or '0'
  if ARG_TERM ~= term then return { 'NEW', term } end
  -- The part still reports it, because a failover has lost its end.
  if endedAt then redis.call('ZREM', KEY_ENDED, field) end
  if not known then redis.call('HSET', KEY_SEEN, field, '0') end
end
local had = tonumber(known or '0')
if total > had then
  redis.call('HSET', KEY_SEEN, field, ARG_TOTAL)
  redis.call('HINCRBY', KEY_META, 'used', string.format('%.0f', total - had))
end
if need < 0 then
  if ledger == ARG_LEDGER then
    redis.call('HDEL', KEY_GRANTS, ARG_PART)
    redis.call('HDEL', KEY_HOLD, ARG_PART)
    redis.call('HDEL', KEY_SHORT, ARG_QUEUE)
  end
  return { 'OK', isDue(), '0', 0 }
end
given = math.max(ledger == ARG_LEDGER and tonumber(given) or 0, tonumber(ARG_GIVEN))
local m = redis.call('HMGET', KEY_META, 'plan', 'included', 'used')
local held = given - tonumber(ARG_GIVEN) + tonumber(ARG_LEFT ~= '' and ARG_LEFT or '0')
local function write()
  -- A part has a single ledger. The part has lost the other one.
  if ledger and ledger ~= ARG_LEDGER then noteEnd(ARG_PART, ledger) end
  local grant, hold = ARG_LEDGER .. string.format(' %.0f', given), held > 0 and ARG_LEFT ~= '' and string.format('%.0f', held)
  if redis.call('HGET', KEY_GRANTS, ARG_PART) ~= grant then redis.call('HSET', KEY_GRANTS, ARG_PART, grant) end
  if redis.call('HGET', KEY_HOLD, ARG_PART) == hold then return end
  if hold then redis.call('HSET', KEY_HOLD, ARG_PART, hold) else redis.call('HDEL', KEY_HOLD, ARG_PART) end
end
local function refuse(word)
  write()
  if word ~= 'BUSY' and ARG_WAITS == '1' then redis.call('HSET', KEY_SHORT, ARG_QUEUE, (word == 'CLOSED' and '0' or ARG_NEED) .. ' ' .. ARG_NOW_MS) end
  local parts = {}
  if word == 'BUSY' then
    local all = redis.call('HGETALL', KEY_HOLD)
    -- If there are more of them, they take turns, because some of them may be on a Redis master that doesn't reply.
    local first = #all > 2 * MOST_HOLDERS and tonumber(ARG_NOW_MS) or 0
    for n = 1, #all, 2 do
      local i = (n - 1 + 2 * first) % #all + 1
      if all[i] ~= ARG_PART and tonumber(all[i + 1]) > 0 and #parts < MOST_HOLDERS then parts[#parts + 1] = all[i] end
    end
  end
  return { word, isDue(), unpack(parts) }
end
if need > 0 and ARG_LEFT ~= '' then
  if not m[1] or not m[2] then return refuse('CLOSED') end
  local parts = math.max(1, redis.call('HLEN', KEY_GRANTS))
  local missing = need - held
  if m[1] == 'Metered' then
    given, held = given + math.max(missing, MOST, 0), held + math.max(missing, MOST, 0)
  elseif missing > 0 then
    local left = tonumber(m[2]) - tonumber(m[3] or '0')
    local free = left - held - heldByOthers(KEY_HOLD, ARG_PART)
    if missing > free then return refuse(missing > left - held and 'SHORT' or 'BUSY') end
    local amount = math.max(missing, math.min(MOST, math.floor(free / (2 * parts))))
    given, held = given + amount, held + amount
  end
end
write()
return { 'OK', isDue(), string.format('%.0f', given), redis.call('HDEL', KEY_SHORT, ARG_QUEUE) }
