-- Runs a health check on objects and notes its lines: lua5.1 lines.lua <check> <file that returns the objects>
-- Writes a line `verdict <tab> status <tab> message` for each object, then a line `ran <tab> N` for each line that ran.
local path, objects = arg[1], dofile(arg[2])
local ran = {}

for _, object in ipairs(objects) do
  obj = object
  local check = assert(loadfile(path))
  debug.sethook(function(_, line)
    if debug.getinfo(2, "S").source == "@" .. path then
      ran[line] = true
    end
  end, "l")
  local verdict = check()
  debug.sethook()
  print("verdict", verdict.status, verdict.message)
end
for line in pairs(ran) do
  print("ran", line)
end
