#!lua flags=allow-oom
-- Notes that a ledger has ended, after its total was counted. The part of this ledger never reports it again. Removes
-- what was granted to it.
--@keys hold grants ended
--@args part ledger
-- Returns {OK, 1 if there are ledgers that may be forgotten}.
--@include ../../lanes/clock.lua
--@include ended-ledgers.lua
noteEnd(ARG_PART, ARG_LEDGER)
if string.match(redis.call('HGET', KEY_GRANTS, ARG_PART) or '', '^%S+') == ARG_LEDGER then
  redis.call('HDEL', KEY_GRANTS, ARG_PART)
  redis.call('HDEL', KEY_HOLD, ARG_PART)
end
return { 'OK', isDue() }
