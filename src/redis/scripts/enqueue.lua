#!lua
-- Puts events of an inbox into the lanes of a replay, which is paid for.
-- KEYS  1 I:meta  2 I:s:<sub>  3 X:in  4 X:pend  5 X:due  6 X:rp  7 I:rp:<replay id>
-- ARGV  1 nowMs  2 ttlMs of KEYS[7]  3 inc  4 replay id  5 number of the chunk  6.. (ref, stream id)*, oldest first
-- Returns {OK, one letter per ref} or {CLOSED} (missing is closed: nothing was written).
--         Letters: t taken, o still open, g gone (retention removed it, or the inbox is no more).
-- A chunk is put once: its answer is kept, and repeated, for longer than anybody may ask for it again.
-- `rp` keeps the replays of each event: all that are open, and the last 20.
--@include lanes
local before = redis.call('HGET', KEYS[7], ARGV[5])
if before then return { 'OK', before } end
local meta = redis.call('HMGET', KEYS[1], 'ready', 'state')
if meta[1] ~= '1' then return { 'CLOSED' } end
local s = redis.call('HMGET', KEYS[2], 'inc', 'route', 'unordered')
local gone = s[1] ~= ARGV[3] or s[2] == 'closed' or meta[2] ~= 'active'
local id, flags, taken = ARGV[4], {}, 0
for i = 6, #ARGV, 2 do
  local ref = ARGV[i]
  local e = not gone and redis.call('XRANGE', KEYS[3], ARGV[i + 1], ARGV[i + 1])[1]
  local gk = e and e[2][2]
  if not gk then
    flags[#flags + 1] = 'g'
  elseif redis.call('ZSCORE', KEYS[4], gk .. NUL .. ref) then
    flags[#flags + 1] = 'o'
  else
    local key = gk .. '\1' .. id
    local member = key .. NUL .. ref
    redis.call('ZADD', KEYS[4], 0, member)
    redis.call('ZADD', KEYS[5], 'NX', ARGV[1], s[3] and member or key)
    local ids = {}
    for each in string.gmatch(redis.call('HGET', KEYS[6], ref) or '', '[^,]+') do ids[#ids + 1] = each end
    local kept = {}
    for k, each in ipairs(ids) do
      if k > #ids - 19 or redis.call('ZSCORE', KEYS[4], gk .. '\1' .. each .. NUL .. ref) then kept[#kept + 1] = each end
    end
    kept[#kept + 1] = id
    redis.call('HSET', KEYS[6], ref, table.concat(kept, ','))
    taken = taken + 1
    flags[#flags + 1] = 't'
  end
end
if taken > 0 then redis.call('HINCRBY', KEYS[2], 'n:replayed', taken) end
local answer = table.concat(flags)
redis.call('HSET', KEYS[7], ARGV[5], answer)
redis.call('PEXPIRE', KEYS[7], ARGV[2])
return { 'OK', answer }
