-- Packs and unpacks the refs in P:in. You can find the format in lists.lua.
local REFS, REF_BYTES, HEAD_BYTES = 16, 8, 8
local NO_LIST = string.rep('\0', HEAD_BYTES)
local packedRef, packedAs
local function packRef(ref)
  if packedRef ~= ref then
    packedRef = ref
    packedAs = struct.pack('>I6I2', msOf(ref), tonumber(string.sub(ref, 12), 16))
  end
  return packedAs
end
local function unpackRef(chunk, at) return string.format('%011x%04x', struct.unpack('>I6I2', chunk, at)) end
