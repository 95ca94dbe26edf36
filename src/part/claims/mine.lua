#!lua flags=no-writes
-- Reads the claims of a dispatcher which has missed a push or a reply. Each call returns a single page.
--@keys meta claims
--@args gen dispatcher cursor
-- Returns {OK, cursor ('0': done), (lane, ref)*}, or GONE.
local gen = redis.call('HGET', KEY_META, 'gen')
if gen and gen ~= ARG_GEN then return { 'GONE' } end
local page = redis.call('HSCAN', KEY_CLAIMS, ARG_CURSOR, 'COUNT', 512)
local out = { 'OK', page[1] }
for i = 1, #page[2], 2 do
  local claim = page[2][i + 1]
  if string.sub(claim, 17) == ARG_DISPATCHER then
    out[#out + 1] = page[2][i]
    out[#out + 1] = string.sub(claim, 2, 16)
  end
end
return out
