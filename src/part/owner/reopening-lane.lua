-- Continues a lane if an event that is due was added to P:pend. This event can be the first one of the lane.
local function reopenLane(lane)
  if claimOf[lane] == nil then
    claimOf[lane] = redis.call('HGET', KEY_CLAIMS, lane)
    stateOf[lane] = redis.call('HGET', KEY_LANES, lane)
  end
  local claim, state = claimOf[lane], stateOf[lane]
  if claim then
    -- The lane continues when the attempt ends.
    if string.byte(claim) == CLAIMED then setClaim(lane, '+' .. string.sub(claim, 2)) end
  elseif state == 'r' then
    redis.call('ZREM', KEY_RETRIES, lane)
    queueHead(lane, (headOf(lane)))
    writeLanes()
  elseif not state then
    queueHead(lane, (headOf(lane)))
    writeLanes()
  else
    forgetHead(lane, state)
  end
end
