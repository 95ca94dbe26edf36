#!lua flags=allow-oom
-- Writes the fields of a hash. This is the same as HSET or HSETNX.
--@keys hash
--@args command ...
-- More: (field, value)*
for i = FIRST, #ARGV, 2 do redis.call(ARG_COMMAND, KEY_HASH, ARGV[i], ARGV[i + 1]) end
return { 'OK' }
