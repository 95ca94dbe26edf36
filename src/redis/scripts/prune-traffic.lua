#!lua flags=allow-oom
-- Removes all folded minutes of a text (lib/traffic). All of them are before its newest minute.
-- KEYS 1 the hash containing the text
-- ARGV  (field, text as it was folded)*
-- Returns OK.
for i = 1, #ARGV, 2 do
  local text = redis.call('HGET', KEYS[1], ARGV[i])
  local begun, minute = string.match(ARGV[i + 1], '^(%d+);.*;(%d+) %d+ %d+ %d+$')
  if text and minute and string.match(text, '^[^;]*') == begun then
    local from = string.find(text, ';' .. minute .. ' ', 1, true)
    if from then redis.call('HSET', KEYS[1], ARGV[i], begun .. string.sub(text, from)) end
  end
end
return 'OK'
