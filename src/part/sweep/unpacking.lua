-- Slots in packed lists. Each of them uses 5 bytes (they are packed by routing.lua).
local slotAs = {}
local function unpackSlot(bytes)
  local slot = slotAs[bytes]
  if slot then return slot end
  local number = struct.unpack('>I5', bytes)
  slot = ''
  for _ = 1, 8 do
    local digit = number % 32
    slot = string.char(digit < 10 and 48 + digit or 87 + digit) .. slot
    number = (number - digit) / 32
  end
  slotAs[bytes] = slot
  return slot
end
