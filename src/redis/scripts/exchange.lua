#!lua flags=allow-oom
-- Ends claimed attempts of one subscription, then claims due lanes: an attempt starts when its claim commits.
-- KEYS  1 I:meta  2 I:act  3 I:s:<sub>  4 X:pend  5 X:due  6 X:cl  7 X:try  8 X:fin  9 X:body  10.. X:rec:<6h>
-- ARGV  1 nowMs  2 room (claims that can be sent at once; 0: none is asked for)  3 token  4 leaseMs
--       5 ttlMs of a record bucket  6 how the last of these attempts ended (lib/delivery), or ''  7 number of items
--       8.. items, and bodies of answers, as lib/completing says
-- Returns {when something may be claimed next, ms, or '', a letter per item, word, cfgv, more (1: look again at once),
--         (lane, ref, attempts, lapses)* separated by line ends, of which none of them has one,
--         news of the subscription's deliveries as lib/delivery says, or ''}.
--         Letters: o OK, g GONE (not open any more), s STALE (another claim holds the lane).
--         Words, of the claim: OK, CLOSED (missing is closed), PAUSED (not sending now), GONE; DISABLED (its endpoint is,
--         maybe by this call); '' when no claim was asked for.
-- A claim is `token|ref`, with a plus before it when the lane held more behind that ref: whoever ends it need not look.
--@include generation
--@include lanes
--@include failures
--@include traffic
--@include health
--@include pacing
--@include delivery
local known
-- Whether anything was tried and is still open: without that there is no retry to look for.
local function hasTries()
  if known == nil then known = redis.call('EXISTS', KEYS[7]) == 1 end
  return known
end
-- What both halves go by, read once: ready, state, traffic; inc, health, send, cap, cfgv, and of its deliveries.
local meta = redis.call('HMGET', KEYS[1], 'ready', 'state', 'traffic')
local s = redis.call('HMGET', KEYS[3], 'inc', 'health', 'send', 'cap', 'cfgv', 'delivery', 'n:dead', 'testsDead')
--@include completing
--@include claiming
local letters, disabled, deaths = complete(8, tonumber(ARGV[7]))
local word, cfgv, more, claims, notBefore = disabled and 'DISABLED' or '', '', 0, {}, nil
if ARGV[2] ~= '0' then word, cfgv, more, claims, notBefore = claim(tonumber(ARGV[2])) end
-- Nobody would say so later: who is not sending does not ask how the endpoint is.
if disabled and word == 'PAUSED' then word = 'DISABLED' end
-- Nothing is noted of a subscription that is gone: its hash is not made again.
local news = isOf(s[1], KEYS[4]) and noteDelivery(ARGV[6], deaths, s) or ''
local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
local next = first[2] or ''
if next ~= '' then
  local soonest, now = tonumber(next), tonumber(ARGV[1])
  if soonest >= RETRIES then
    soonest = soonest - RETRIES
    next = string.format('%.0f', soonest)
  elseif soonest > now + FURTHEST_MS then
    soonest, next = now, ARGV[1]
  elseif soonest > now and hasTries() then
    local retry = redis.call('ZRANGEBYSCORE', KEYS[5], RETRIES, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    if retry and tonumber(retry) - RETRIES < soonest then
      soonest = tonumber(retry) - RETRIES
      next = string.format('%.0f', soonest)
    end
  end
  if notBefore and soonest < notBefore then next = string.format('%.0f', notBefore) end
end
return { next, letters, word, cfgv or '', more or 0, table.concat(claims or {}, '\n'), news }
