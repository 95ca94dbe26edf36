-- How many bytes an open delivery uses in the quota, in addition to its reference (log/cost.lua). These bytes are
-- enough for a delivery that waits for a retry and for the record of one that fails. This way, a part that has reached
-- its limit doesn't exceed it when its deliveries fail. The bytes are given back when the delivery ends. Measured with
-- Redis 7.0.
local OPEN_COST = 450
-- `failed`: the text of its failed attempts (lanes/tries.lua). Any text that is longer than 36 bytes uses more.
local function openCost(failed) return OPEN_COST + math.ceil(4 / 3 * math.max(0, #failed - 36)) end
-- Whether a delivery in this lane uses the quota. Replays and test events don't, because they are not from the
-- producer.
local function usesQuota(lane) return not isTest(lane) and not replayOf(lane) end
