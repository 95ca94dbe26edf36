-- Slots of packed lists, 5 bytes each (routing.lua packs them).
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
