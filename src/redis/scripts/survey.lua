#!lua flags=no-writes
-- What `route` would answer for a subscription now, and what its integration's ledger says.
-- KEYS  1 I:meta  2 I:s:<sub>  3 I:led
-- ARGV  1 gen of the queue  2 payer
-- Returns {OK, or the word that `route` refuses all with; generation of the ledger or ''; total of the payer; last ref or ''}.
--@include admission
local word, _, s = admission(KEYS[1], KEYS[2], ARGV[1])
local led = redis.call('HMGET', KEYS[3], 'gen', ARGV[2])
return { word or 'OK', led[1] or '', led[2] or '0', s and s[5] or '' }
