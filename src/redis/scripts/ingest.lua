#!lua
-- Stores up to 64 events in one queue, each once per event id within 24 h.
-- KEYS  1 Q:meta  2 Q:m:gen  3 Q:b:gen  4 Q:id:gen:<bucket now>  5.. the four buckets before it, and the
--       one after it (filled before Redis's clock was set back)
-- ARGV  1 nowMs  2 cfgv  3 ttlMs of the id bucket  4.. (16-byte id hash, group key or '', metadata, body)*
-- Returns lines: OK, awake (1|0), (OK|DUP|FULL, stream id or '')*; or one word: STALE (another cfgv), CLOSED, GONE (no
--         such queue). Awake: a router is at work and reads on until it finds the queue empty, which it notes in the
--         same step (`next`); otherwise nobody looks at the queue before its hint is lowered.
-- Refused as a whole, before its first write, when Redis is out of memory (no allow-oom).
-- The quota counts what an event takes up until it is trimmed. Q:m keeps it (`c`) beside the size of the body (`s`), which
-- is what tokens are computed from: `trim` gives back exactly what was taken here.
--@include traffic
local DAY = 86400000
-- What an event takes up besides body, metadata and group key: its two stream entries, its field in the hash of ids. Redis
-- 7.0.15 was seen to use 150 to 300 bytes for it (MEMORY USAGE: 160 to 500), 100 of them the id's; 490 with a group key of
-- 256 bytes, which lies in both streams. Beyond 2 KiB the allocator's size classes add up to a quarter.
local OVERHEAD = 400
local now = tonumber(ARGV[1])
-- When an event was accepted, by its stream id.
local function idMs(id) return tonumber(string.match(id, '^%d+')) end
local meta = redis.call('HMGET', KEYS[1], 'ready', 'cfgv', 'state', 'bytes', 'maxBytes', 'ms', 'until', 'arrived')
if meta[1] ~= '1' then return 'GONE' end
if meta[2] ~= ARGV[2] then return 'STALE' end
if meta[3] ~= 'open' then return 'CLOSED' end
-- As `own` judges it: a lease that ends later was taken before the clock was set back. A router's lease is 5 s.
local ends = tonumber(meta[7] or '0')
local awake = ends > now and ends <= now + 10000
local bytes, maxBytes = tonumber(meta[4] or '0'), tonumber(meta[5])
local ms = math.max(now, tonumber(meta[6] or '0'))
local taken, bodies = 0, 0
local n = (#ARGV - 3) / 4
local hashes = {}
for i = 1, n do hashes[i] = ARGV[4 * i] end
local seen = {}
for k = 4, #KEYS do
  local found = redis.call('HMGET', KEYS[k], unpack(hashes))
  for i = 1, n do
    if found[i] and now - idMs(found[i]) < DAY then seen[hashes[i]] = found[i] end
  end
end
local out, ids = { 'OK', awake and '1' or '0' }, {}
local anew = string.format('%.0f-*', ms)
for i = 1, n do
  local at = 4 * i
  local size = #ARGV[at + 3]
  local cost = size + #ARGV[at + 2] + #ARGV[at + 1] + OVERHEAD
  local known = seen[hashes[i]]
  if known then
    out[#out + 1] = 'DUP'
    out[#out + 1] = known
  elseif bytes + taken + cost > maxBytes then
    out[#out + 1] = 'FULL'
    out[#out + 1] = ''
  else
    -- What the router reads, and what the dispatcher reads: each reads one stream, and nothing else of it.
    local id = redis.call('XADD', KEYS[2], anew, 'g', ARGV[at + 1], 's', size, 'c', cost)
    redis.call('XADD', KEYS[3], id, 'g', ARGV[at + 1], 'm', ARGV[at + 2], 'b', ARGV[at + 3])
    seen[hashes[i]] = id
    ids[#ids + 1] = hashes[i]
    ids[#ids + 1] = id
    taken = taken + cost
    bodies = bodies + size
    out[#out + 1] = 'OK'
    out[#out + 1] = id
  end
end
if #ids > 0 then
  redis.call('HSET', KEYS[4], unpack(ids))
  local arrived = counted(meta[8], ms, '', #ids / 2, bodies, 0)
  redis.call('HSET', KEYS[1], 'bytes', bytes + taken, 'ms', ms, 'arrived', arrived)
  if redis.call('PTTL', KEYS[4]) < 0 then redis.call('PEXPIRE', KEYS[4], ARGV[3]) end
end
return table.concat(out, '\n')
