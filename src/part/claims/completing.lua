-- Ends `plainCount` attempts that have delivered the event of a plain lane (plain-deliveries.lua), with three arguments
-- each, starting at `at`. After them, ends `count` other attempts. Each of them has six arguments:
--   lane, ref, outcome, due (ms, of f), index in KEYS of the records of its ref, note (reason, ' ', latency in hex
--   or -)
--   outcome: d(elivered), x (dead), e(xpired): final; f(ailed): again when due; g(one): answered with 410, which
--   disables the endpoint, and goes first when it is re-enabled; r(eleased): again at once, no attempt counted.
--   Behind all but d a letter of how the attempt ended (exchange.ts), where one was made that says something of the
--   endpoint
-- After them (number of an item from 0, + if the answer was longer, or '', what an attempt was answered with)*. If the
-- event is open, `delivered` is accepted from any dispatcher, because the partner has received the event. Any other
-- outcome is only accepted from the holder of the claim. A lane can only be continued by the holder of the claim.
-- Returns letters: o (done), g (had already ended), s (another claim or no claim); and the slots that this call
-- disabled.
local delivered, missed, complete = 0, 0, nil
do
  local FINAL = { d = true, x = true, e = true }
  -- The latency of a note without an attempt: -
  local NOT_SENT = 45

  -- The results of the attempts for a slot which affect its health.
  local outcomesOf = {}
  local function noteOutcome(slot, entry, kind)
    local o = outcomesOf[slot] or { failed = 0, entries = {} }
    outcomesOf[slot] = o
    if kind == 'delivered' then
      o.delivered = true
      return
    end
    o.entries[entry] = true
    if kind == 'failed' then o.failed = o.failed + 1 else o[kind] = true end
  end

  -- Sets the result of the last attempt for this slot. If a result was received too late, it is older than the attempt
  -- that has replaced it.
  local function noteAttempt(slot, outcome, attempt)
    if outcome == 'd' then attemptOf[slot] = 's' elseif attempt ~= '' then attemptOf[slot] = attempt end
  end

  local function finishEvent(slot, isTesting, ref, entry, outcome, at, name, note, answer)
    local text = triesOf(entry)
    local attempts, _, _, failed = readTries(text)
    local wasSent = string.byte(note, -1) ~= NOT_SENT
    if wasSent then attempts = attempts + 1 end
    local isListed = addRecord(at, name, ref, slot, outcome, attempts, note, failed)
    if text then redis.call('HDEL', KEY_TRIES, entry) end
    if isListed then redis.call('ZADD', KEY_FINAL, 0, slot .. name) end
    if answer then keepAnswer(slot, entry, earlierOf(failed) + attempts, ARGV[answer + 1], ARGV[answer + 2]) end
    if not isTesting then addCount(slot, outcome, 1) end
    if outcome == 'x' and not isTesting then noteDeath(slot, ref) end
    -- The name of a replay's records is longer than its ref.
    local counts = not isTesting and name == ref
    if counts then addBytes(-openCost(failed)) end
    if outcome == 'd' then
      noteOutcome(slot, entry, 'delivered')
      if counts then delivered = delivered + 1 end
    elseif outcome == 'x' and wasSent then
      noteOutcome(slot, entry, 'failed')
      if string.find(note, '410 ', 1, true) == 1 then noteOutcome(slot, entry, 'gone') end
      if counts then missed = missed + 1 end
    else
      noteOutcome(slot, entry, 'released')
    end
  end

  -- If a lane's claim has ended, this claims its next event or adds it to the queue.
  local function followLane(slot, lane, plain)
    local entry, head, more = headOf(lane, plain)
    if not entry then return end
    if waitingOf[slot] == NONE and sendOf[slot] == 111 and paceOf[slot] == 0 and taken < budget
      and flightOf[slot] < limitOf[slot] and not triesOf(entry) then
      takeLane(slot, lane, plain, entry, head, more, nil)
    else
      queueLane(lane, entry, more and head .. '+' or head, slot)
    end
  end

  -- Returns whether the part can store this many more bytes within its limits.
  local function hasRoomFor(bytes)
    local limits = redis.call('HMGET', KEY_META, 'maxBytes', 'storedMax', 'space')
    local most = math.min(tonumber(limits[1] or '0'), limits[2] and tonumber(limits[3] or '0') or math.huge)
    return tonumber(meta[7] or '0') + byteChange + bytes <= most
  end

  -- Adds a failed attempt. If the part has no room for it, the oldest attempts are removed.
  local function noteFailed(failed, attempt, counts)
    local longer = addFailed(failed, attempt)
    if not counts then return longer end
    local before = openCost(failed)
    if openCost(longer) > before and not hasRoomFor(openCost(longer) - before) then
      while openCost(longer) > before do longer = withoutOldest(longer) end
    end
    addBytes(openCost(longer) - before)
    return longer
  end

  local function giveBack(lane, ref, outcome, due, note, answer)
    local slot, entry = slotOf(lane), entryOf(lane, ref)
    addEntry(entry)
    if outcome == 'r' then
      noteOutcome(slot, entry, 'released')
    else
      local attempts, _, _, failed = readTries(triesOf(entry))
      attempts = attempts + 1
      due = outcome == 'g' and 0 or tonumber(due)
      local counts = usesQuota(lane)
      failed = noteFailed(failed, ageOf(ref) .. ' ' .. note, counts)
      writeTries(entry, attempts, 0, due, failed)
      hasTries = true
      if answer then keepAnswer(slot, entry, earlierOf(failed) + attempts, ARGV[answer + 1], ARGV[answer + 2]) end
      noteOutcome(slot, entry, 'failed')
      if outcome == 'g' then noteOutcome(slot, entry, 'gone') end
      if counts then missed = missed + 1 end
    end
    if outcome == 'f' then
      -- The partner may have recovered an earlier event in the meantime.
      local head = headOf(lane)
      if head and head < entry then queueLane(lane, head) else retryLane(lane, due) end
    elseif outcome == 'g' then
      -- Disable the endpoint and stop its slot.
      waitLane(lane, FIRST_ATTEMPT, 0)
      waitingOf[slot] = STOPPED
    else
      queueLane(lane, entry)
    end
  end

  -- Updates a lane if a waiting event was delivered by the holder of an earlier claim.
  local function dropWaiting(lane)
    local state = redis.call('HGET', KEY_LANES, lane)
    local head = headOf(lane)
    if not state then return end
    if state == 'r' then redis.call('ZREM', KEY_RETRIES, lane) end
    if not head then
      if state ~= 'r' and state ~= 'p' then unwaited[#unwaited + 1] = waitOf(lane, state) end
      setState(lane, false)
    elseif state == 'r' then
      queueLane(lane, head)
    else
      keepLane(lane, state, head)
    end
  end

  local function noteHealth(disabled)
    for slot, o in pairs(outcomesOf) do
      if routeOf[slot] then
        if (o.gone or o.failed > 0) and (o.gone or not o.delivered) then
          local h, off = noteFailures(slot, o.failed, o.gone, o.entries)
          if off then disabled[#disabled + 1] = slot end
          if h.disabled ~= '-' or h.pause > 0 then
            waitingOf[slot] = STOPPED
            changedCounts[slot] = true
            if h.disabled == '-' then redis.call('ZADD', KEY_RETRIES, string.format('%.0f', h.next), slot .. '\2') end
          end
        else
          local h = healthOf(slot)
          if h and h.disabled == '-' and o.delivered then
            forgetHealth(slot)
            if waitingOf[slot] == STOPPED or waitingOf[slot] == ASK then waitingOf[slot] = SOME end
            changedCounts[slot] = true
          elseif h and h.disabled == '-' and o.entries[h.probe] then
            -- Since the probe was released, another event can be used for a probe.
            h.next, h.probe = now, ''
            writeHealth(slot, h)
            redis.call('ZADD', KEY_RETRIES, string.format('%.0f', now), slot .. '\2')
          end
        end
      end
      if waitingOf[slot] == SOME then giveTurn(slot) end
    end
  end

  local function noteDelivered(slot, count)
    flightOf[slot] = math.max(0, flightOf[slot] - count)
    addCount(slot, 'd', count)
    addBytes(-OPEN_COST * count)
    noteAttempt(slot, 'd')
    noteOutcome(slot, nil, 'delivered')
    delivered = delivered + count
  end

  local touched = {}

  -- Ends an attempt whose claim has been read. Returns its letter, and whether to continue the lane.
  local function endAttempt(lane, ref, outcome, attempt, due, recordsKey, note, answer)
    local slot, isTesting = slotOf(lane), isTest(lane)
    local entry, name = entryOf(lane, ref), isPlain(lane) and ref or recordName(ref, replayOf(lane))
    -- At this point, P:pend must already contain the earlier changes of this call.
    if touched[lane] or changedClaims[lane] then writeLanes() end
    touched[lane] = true
    local claim = claimOf[lane]
    local isClaimed = claim and string.sub(claim, 2, 16) == ref
    if isClaimed and string.sub(claim, 17) == ARG_DISPATCHER then
      noteAttempt(slot, outcome, attempt)
      leaveFlight(slot)
      setClaim(lane, false)
      if outcome == 'r' then giveToBucket(slot) end
      if isEnded(claim) then
        noteOutcome(slot, entry, 'released')
        local attempts = string.byte(note, -1) ~= NOT_SENT and addLateAttempt(recordsKey, name, ref, slot, note)
        if attempts and outcome ~= 'd' and usesQuota(lane) then missed = missed + 1 end
        if attempts and answer then keepAnswer(slot, entry, attempts, ARGV[answer + 1], ARGV[answer + 2]) end
        return 'g', true
      end
      if not FINAL[outcome] then
        giveBack(lane, ref, outcome, due, note, answer)
        return 'o', false
      end
      finishEvent(slot, isTesting, ref, entry, outcome, recordsKey, name, note, answer)
      return 'o', string.byte(claim) ~= CLAIMED
    end
    if outcome ~= 'd' then return 's', false end
    if isClaimed and not isEnded(claim) then
      -- The event was delivered by an earlier holder of the claim. The lane is kept by the current holder until its
      -- attempt has ended.
      setClaim(lane, markEnded(claim))
      noteAttempt(slot, outcome, attempt)
      finishEvent(slot, isTesting, ref, entry, outcome, recordsKey, name, note, answer)
      return 'o', false
    end
    if redis.call('ZREM', KEY_PENDING, entry) == 0 then return 'g', false end
    noteAttempt(slot, outcome, attempt)
    finishEvent(slot, isTesting, ref, entry, outcome, recordsKey, name, note, answer)
    dropWaiting(lane)
    return 'o', false
  end

  -- Reads the claims and records of all attempts. Returns the slots of those from `from` on, and their responses.
  local function readAttempts(at, plainCount, from, count)
    local lanes, slots, fieldsOf, answers, asked = {}, {}, {}, {}, {}
    for i = at + 1, from - 1, 3 do
      local ref = ARGV[i]
      if not asked[ref] then
        local fields = fieldsOf[FIRST_RECORDS] or {}
        fieldsOf[FIRST_RECORDS], asked[ref], fields[#fields + 1] = fields, true, ref
      end
    end
    for i = from, from + 6 * count - 1, 6 do
      local lane = ARGV[i]
      lanes[#lanes + 1], slots[#slots + 1] = lane, slotOf(lane)
      if FINAL[string.sub(ARGV[i + 2], 1, 1)] then
        local key = FIRST_RECORDS + ARGV[i + 4]
        local fields = fieldsOf[key] or {}
        fieldsOf[key] = fields
        fields[#fields + 1] = isPlain(lane) and ARGV[i + 1] or recordName(ARGV[i + 1], replayOf(lane))
      end
    end
    for i = from + 6 * count, #ARGV, 3 do answers[from + 6 * tonumber(ARGV[i])] = i end
    readFields(KEY_CLAIMS, lanes, claimOf)
    readRecords(fieldsOf)
    return slots, answers
  end

  function complete(at, plainCount, count)
    local letters, disabled, others, followPlain, follow = {}, {}, {}, {}, {}
    local from = at + 3 * plainCount
    local slots, answers = readAttempts(at, plainCount, from, count)
    local endedBySlot = plainCount > 0 and endPlain(at, plainCount, letters, others, followPlain) or {}
    for slot in pairs(endedBySlot) do slots[#slots + 1] = slot end
    for _, n in ipairs(others) do slots[#slots + 1] = slotOf(ARGV[at + 3 * n - 3]) end
    readSlots(slots)
    for slot, ended in pairs(endedBySlot) do noteDelivered(slot, ended) end
    for _, n in ipairs(others) do
      local i, follows = at + 3 * n - 3, nil
      letters[n], follows = endAttempt(ARGV[i], ARGV[i + 1], 'd', '', '0', FIRST_RECORDS, ARGV[i + 2], nil)
      if follows then
        followPlain[#followPlain + 1] = slotOf(ARGV[i])
        followPlain[#followPlain + 1] = ARGV[i]
      end
    end
    for n = plainCount + 1, plainCount + count do
      local i, follows = from + 6 * (n - plainCount - 1), nil
      local lane, ref, outcome, due, index, note = unpack(ARGV, i, i + 5)
      local attempt, key = string.sub(outcome, 2), FIRST_RECORDS + index
      outcome = string.sub(outcome, 1, 1)
      letters[n], follows = endAttempt(lane, ref, outcome, attempt, due, key, note, answers[i])
      if follows then follow[#follow + 1] = lane end
    end
    noteHealth(disabled)
    -- Update the health first, so that no event is claimed for an endpoint that this call disables.
    for i = 1, #followPlain, 2 do followLane(followPlain[i], followPlain[i + 1], true) end
    for _, lane in ipairs(follow) do followLane(slotOf(lane), lane, isPlain(lane)) end
    writeRecords()
    return table.concat(letters), disabled
  end
end
