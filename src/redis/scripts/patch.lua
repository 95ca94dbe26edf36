#!lua flags=allow-oom
-- Used by the controller to write to a single slot. Either everything is written, or nothing is.
-- KEYS  1 the slot's meta hash (holds `fence`)  2.. keys that the operations name by index
-- ARGV  1 fence  2.. (command, index of its key, number of arguments, argument*)*
-- Returns OK, or FENCED when a newer controller leads (its epoch is higher): nothing was written then. The fence is
-- preserved even if the same patch removes a meta hash and creates it again.
local fence = tonumber(ARGV[1])
local have = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if have > fence then return 'FENCED' end
if have < fence then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
local allowed = {
  HSET = 1, HSETNX = 1, HDEL = 1, SADD = 1, SREM = 1, DEL = 1, UNLINK = 1,
}
local at = 2
while at <= #ARGV do
  local command, key, n = ARGV[at], KEYS[tonumber(ARGV[at + 1])], tonumber(ARGV[at + 2])
  if not allowed[command] then return redis.error_reply('ERR patch does not do ' .. command) end
  local args = {}
  for i = 1, n do args[i] = ARGV[at + 2 + i] end
  redis.call(command, key, unpack(args))
  at = at + 3 + n
end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
return 'OK'
