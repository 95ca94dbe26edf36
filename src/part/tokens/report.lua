#!lua flags=allow-oom
-- Reads what a part has routed at the cost of its payer, and how much it is still allowed to route. Also reads its
-- other counts, which are added to the series and to the stored bytes at the same time.
--@keys meta
--@args gen
-- Returns {OK, payer or '', plan or '', ledger, its total, tokens ever granted to it, tokens left of them or '' without
--         a bound, tokens of the event that waits for them or 0, `owed`, `ended` (ledger.lua), `in`, `out`
--         (lib/traffic) or '', stored bytes}, or GONE. If the generation is -, the part was removed, and only `owed`
--         and `ended` are left.
--@include ../lanes/clock.lua
--@include ledger.lua
local FIELDS = {
  'gen', 'payer', 'plan', 'ledger', 'used', 'base', 'given', 'granted', 'need', 'hold', 'owed', 'ended', 'in', 'out',
  'bytes',
}
local meta = {}
for i, value in ipairs(redis.call('HMGET', KEY_META, unpack(FIELDS))) do meta[FIELDS[i]] = value end
if meta.gen ~= ARG_GEN then return { 'GONE' } end
local payer = meta.payer or ''
if payer ~= '' and not meta.ledger then
  meta.ledger = newLedger(meta.base or '0')
  redis.call('HSET', KEY_META, 'ledger', meta.ledger)
end
local used = tonumber(meta.used or '0')
local left = meta.granted and string.format('%.0f', math.max(0, tonumber(meta.granted) - used)) or ''
local need = meta.need or (meta.hold == 'tokens' and '1') or '0'
return {
  'OK', payer, meta.plan or '', meta.ledger or '', string.format('%.0f', used - tonumber(meta.base or '0')),
  meta.given or '0', left, need, meta.owed or '', meta.ended or '', meta['in'] or '', meta.out or '', meta.bytes or '0',
}
