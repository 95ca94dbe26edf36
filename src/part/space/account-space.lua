#!lua flags=allow-oom
-- Grants bytes of an account's limit to a part. In total, the parts are never granted more than the limit, unless they
-- already store more than that. A:space: part → number of the change, bytes that the part may store, when they were
-- last taken back (ms).
--@keys space
--@args part seq bytes need limit nowMs
-- seq, bytes: as the part reported them. need: bytes that it has to store now; 0 only notes what it stores.
-- Returns {OK, number of this change, bytes that it may store} (only for a need), or a word with nothing granted:
--         {BUSY, parts*}: take back from these first, or {FULL, bytes that all parts store or have been granted}.
local MOST, RECALL_MS, SLACK = 64, 5000, 20
local all, others, parts, holders = redis.call('HGETALL', KEY_SPACE), 0, 1, {}
local own = redis.call('HGET', KEY_SPACE, ARG_PART)
if not own then
  -- The slack of the other parts is now smaller than what they may have been granted. The rest can be taken back.
  own = ARG_SEQ .. ' ' .. ARG_BYTES .. ' 0'
  redis.call('HSET', KEY_SPACE, ARG_PART, own)
  for i = 1, #all, 2 do
    all[i + 1] = string.gsub(all[i + 1], '%d+$', '0')
    redis.call('HSET', KEY_SPACE, all[i], all[i + 1])
  end
end
local now = tonumber(ARG_NOW_MS)
for i = 1, #all, 2 do
  if all[i] ~= ARG_PART then
    local amount, at = string.match(all[i + 1], '^%d+ (%d+) (%d+)$')
    others, parts = others + tonumber(amount), parts + 1
    if math.abs(now - tonumber(at)) >= RECALL_MS and #holders < MOST then holders[#holders + 1] = all[i] end
  end
end
local seq, amount, at = string.match(own, '^(%d+) (%d+) (%d+)$')
local bytes, need = tonumber(ARG_BYTES), tonumber(ARG_NEED)
amount = math.max(tonumber(amount), bytes)
local free = tonumber(ARG_LIMIT) - others - bytes
local granted = amount
if need > 0 then
  -- The limit has been lowered. If the part has too much, this is taken back first.
  if need <= free and amount - bytes > free then return { 'BUSY', ARG_PART } end
  if need > free then
    if #holders > 0 then return { 'BUSY', unpack(holders) } end
    return { 'FULL', string.format('%.0f', others + bytes) }
  end
  -- All parts together can have at most a twentieth of the limit which they have not used.
  local slack = math.floor(tonumber(ARG_LIMIT) / (SLACK * parts))
  granted = math.max(amount, bytes + math.min(free, math.max(need, slack)))
end
seq = string.format('%.0f', math.max(tonumber(seq), tonumber(ARG_SEQ)) + 1)
granted = string.format('%.0f', granted)
redis.call('HSET', KEY_SPACE, ARG_PART, seq .. ' ' .. granted .. ' ' .. at)
return { 'OK', seq, granted }
