#!lua flags=allow-oom
-- Ends claimed attempts of one subscription, then claims due lanes: an attempt starts when its claim commits.
-- KEYS  1 I:meta  2 I:act  3 I:s:<sub>  4 X:pend  5 X:due  6 X:cl  7 X:try  8 X:fin  9 X:body  10.. X:rec:<6h>
-- ARGV  1 nowMs  2 room (claims that can be sent at once; 0: none is asked for)  3 token  4 leaseMs
--       5 ttlMs of a record bucket  6 number of items  7.. items, and bodies of answers, as lib/completing says
-- Returns {next due ms or '', a letter per item, word of the claim or '', cfgv, more (1: look again at once),
--         (lane, ref, attempts, lapses)* separated by line ends, of which none of them has one}.
--         Letters: o OK, g GONE (not open any more), s STALE (another claim holds the lane).
--         Words: OK, CLOSED (missing is closed), PAUSED (not sending now), GONE.
-- A claim is `token|ref`, with a plus before it when the lane held more behind that ref: whoever ends it need not look.
--@include generation
--@include lanes
--@include failures
--@include completing
--@include claiming
local letters = complete(7, tonumber(ARGV[6]))
local word, cfgv, more, claims = '', '', 0, {}
if ARGV[2] ~= '0' then word, cfgv, more, claims = claim(tonumber(ARGV[2])) end
local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
return { first[2] or '', letters, word, cfgv or '', more or 0, table.concat(claims or {}, '\n') }
