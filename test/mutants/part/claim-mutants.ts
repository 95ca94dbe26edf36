import { type Mutant, mutantsOf } from '../mutant.ts';

const PART = 'src/part/';

/**
 * Mutants of the scripts that claim events, record their results, and change inboxes, and of the dispatchers that run
 * them.
 */
export const CLAIM_MUTANTS: readonly Mutant[] = [
  ...mutantsOf(`${PART}claims/claiming.lua`, [
    ['a removed first event is claimed', 'scores and scores[entryAt[i]] and entries', 'scores and entries'],
  ]),
  ...mutantsOf(`${PART}claims/health.lua`, [
    [
      'subscriptions have no turn after the clock was set back',
      "  inSlices('ZADD', KEY_TURNS, turns)\n",
      '',
      'test/part/claims/clock-set-back.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}claims/completing.lua`, [
    [
      'any dispatcher can end an attempt',
      'if isClaimed and string.sub(claim, 17) == ARG_DISPATCHER then',
      'if isClaimed then',
    ],
    ['an ended attempt is still counted', '      leaveFlight(slot)\n', ''],
    [
      'a failed attempt of an event that has ended is not counted',
      "if attempts and outcome ~= 'd' and usesQuota(lane) then missed = missed + 1 end",
      '',
      'src/part/records/late-attempt.redis.test.ts',
    ],
    [
      'a failed attempt keeps earlier lapses',
      'writeTries(entry, attempts, 0, due, failed)',
      'local _, kept = readTries(triesOf(entry)) writeTries(entry, attempts, kept, due, failed)',
    ],
    ['the next event of a lane is not continued', "return 'o', string.byte(claim) ~= CLAIMED", "return 'o', false"],
    [
      'a late delivery releases the lane of the current dispatcher',
      'setClaim(lane, markEnded(claim))',
      'setClaim(lane, false)',
    ],
    ['a repeated delivery is counted twice', 'if isClaimed and not isEnded(claim) then', 'if isClaimed then'],
    [
      'a lane with more events is never released',
      'if waitingOf[slot] == NONE and sendOf[slot] == 111',
      'if sendOf[slot] == 111',
    ],
    ['a continued lane ignores the gate', ' and sendOf[slot] == 111 and paceOf', ' and paceOf'],
    ['a call does not see its own changes', 'if touched[lane] or changedClaims[lane] then writeLanes() end', ''],
    [
      'a delivery of an evicted dispatcher is lost',
      "if redis.call('ZREM', KEY_PENDING, entry) == 0 then return 'g', false end",
      "do return 'g', false end",
    ],
    [
      'the next event after a delivery waits for the retry',
      "    elseif state == 'r' then\n      queueLane(lane, head)\n",
      '',
    ],
    [
      'the result of an earlier claim counts as the last attempt',
      "if outcome ~= 'd' then return 's', false end",
      "if outcome ~= 'd' then noteAttempt(slot, outcome, attempt) return 's', false end",
      'src/part/state/delivery-state.redis.test.ts',
    ],
    ['the end of an attempt does not give a turn', 'if waitingOf[slot] == SOME then giveTurn(slot) end', ''],
  ]),
  ...mutantsOf(`${PART}claims/plain-deliveries.lua`, [
    ['the next event after a plain delivery is not continued', 'if hasMore then\n', 'if false then\n'],
    ['a plain delivery loses its failed attempts', ' and not tries[n]', ''],
    ['a repeated plain delivery in a call is counted twice', ' and claimOf[lane] == nil then', ' then'],
    ['a plain delivery of an earlier holder releases the lane', '(hasMore or claim == alone)', '(hasMore or claim)'],
  ]),
  ...mutantsOf(`${PART}claims/completing.lua`, [
    [
      'failed attempts exceed the limit',
      'while openCost(longer) > before do longer = withoutOldest(longer) end',
      '',
      'src/part/stored/open-limit.redis.test.ts',
    ],
    [
      'a successful delivery still uses the quota as an open one',
      'addBytes(-OPEN_COST * count)',
      '',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}owner/enqueue.lua`, [
    ['results of delivered replays stay that nobody can read', "takeRecord(at, name, ARG_SLOT, 'd')", 'nil'],
  ]),
  ...mutantsOf(`${PART}claims/exchange.lua`, [
    ['a late call is executed', "if own and tonumber(ARG_NUMBER) <= own.number then return { 'LATE' } end", ''],
  ]),
  ...mutantsOf(`${PART}records/records.lua`, [
    [
      'each of thousands of results rewrites most of the others',
      'CHUNK_BYTES * 2 ^ math.floor(full / 40)',
      'CHUNK_BYTES',
      `${PART}records/delivered.redis.test.ts`,
    ],
    [
      'a dead letter is recovered twice',
      "if outcome == 'x' then outcome = 'X' end",
      '',
      'src/part/owner/recovery.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}owner/recovery.ts`, [
    ['a dead replay does not require another replay', 'replayId !== undefined || recovered', 'recovered'],
  ]),
  ...mutantsOf(`${PART}owner/send-test.lua`, [
    ['a test event is sent again for the same call', "if before then return { 'OK', before } end", ''],
  ]),
  ...mutantsOf(`${PART}owner/enqueue.lua`, [
    ['a repeated chunk of a replay is enqueued again', "if before then return { 'OK', before } end", ''],
    [
      'expired events are replayed',
      "word ~= 'GONE' and ref > cut and",
      "word ~= 'GONE' and",
      'src/part/sweep/replays.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}records/delivered.lua`, [
    ['failed results are removed with their event', 'if string.byte(chunk, at + 5) ~= DELIVERED then', 'if false then'],
    ['only the newest results of an event are read', 'while read < full do', 'while false do'],
    [
      'moved results are not removed from their old place',
      "    for number = left + 1, read do gone[#gone + 1] = name .. '\\0' .. number end\n",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}owner/finish.lua`, [
    [
      'a skipped delivery still uses the quota as an open one',
      'addBytes(-openCost(failed))',
      '',
      'src/part/stored/kept-bytes.redis.test.ts',
    ],
    ['a skip continues a lane during an attempt', 'setClaim(lane, markEnded(claim))', 'setClaim(lane, false)'],
  ]),
  ...mutantsOf(`${PART}owner/send-test.lua`, [
    ['test events in progress are not counted', 'open + countClaimed() >= most', 'open >= most'],
  ]),
  ...mutantsOf(`${PART}claims/taking.lua`, [
    ['a deactivated key is claimed', "redis.call('HGET', KEY_OFF, groupOf(lane)) == '1'", 'false'],
    ['claimed events that do not follow each other in the log are lost', ' or not fieldsOf[sorted[at]]', ''],
    ['a retry is early', 'if due > now then return retryLane(lane, due) end', ''],
  ]),
  ...mutantsOf(`${PART}claims/claiming.lua`, [
    ['events of a held subscription are claimed', 'if sendOf[slot] ~= 111 then return stopSlot(slot) end', ''],
    ['an open breaker does not limit claims', 'if isProbing then most = math.min(most, 1) end', ''],
    ['events that lapsed twice are claimed together', 'not lapsedHeld and waitingIn', 'waitingIn'],
    ['events that lapsed twice wait for all others', ' or now % 8 == 7', '', `${PART}claims/held-claims.redis.test.ts`],
    ['retries use the whole cap', 'free - math.floor(limitOf[slot] / 4)', 'free'],
    ['a slot at its limit keeps its turn forever', 'return left and flightOf[slot] < limitOf[slot],', 'return false,'],
    ['a stopped slot is never started again', "if untilMs then redis.call('ZADD'", "if false then redis.call('ZADD'"],
  ]),
  ...mutantsOf(`${PART}claims/exchange.lua`, [
    [
      'pushed claims are not held',
      'tonumber(ARG_HELD) - plain - count + pushed - tonumber(ARG_SEEN)',
      'tonumber(ARG_HELD) - plain - count',
    ],
    ['a fifth dispatcher claims', 'not own and others >= MOST_DISPATCHERS', 'false'],
    ['missing control data is ignored', "meta[1] ~= '1' and 'CLOSED' or", ''],
  ]),
  {
    name: 'a stopping dispatcher does not report the events that it leaves',
    file: `${PART}claims/exchange.lua`,
    from: 'if limit == 0 and plain + count > 0 and',
    to: 'if false and',
    test: 'src/dataplane/parts/leaving.redis.test.ts',
  },
  ...mutantsOf(`${PART}claims/evict.lua`, [
    ['an active dispatcher is evicted', "if r and r.untilMs > now then return { 'HELD' } end", ''],
    ['an eviction continues after an exchange', 'number ~= ARG_NUMBER', 'false'],
    ['an eviction cannot be continued', "if page[1] == '0' then", 'do'],
    ['an evicted claim does not count as a lapse', 'writeTries(entry, attempts, lapses + 1, due, failed)', ''],
    ['an evicted claim is still counted', '  leaveFlight(slot)\n', ''],
  ]),
  ...mutantsOf(`${PART}records/records.lua`, [
    ['a full chunk of records is lost', "  redis.call('HSET', KEYS[at], name .. '\\0' .. full, had)\n", ''],
    [
      'a successful delivery uses the quota like a failed one',
      '  elseif isListed then\n    failedBytes',
      '  else\n    failedBytes',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
    [
      'test events use the quota of the producer',
      '(name ~= ref or isTestRef(ref))',
      'false',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
    [
      'failed replays are not limited',
      'if bytes > MOST_BYTES then return false end',
      '',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/dataplane/parts/part-worker.ts', [
    [
      'an old claim is sent',
      'return elapsed.nowMs() - atMs <= FRESH_MS && holdsClaims();',
      'return elapsed.nowMs() >= atMs;',
      'src/dataplane/parts/part-metrics.redis.test.ts',
    ],
    [
      'a lost push is not detected',
      'if (count.read(push.pushed, push.bytes, claims)) loop',
      'if (count.read(push.pushed, push.bytes, claims) && false) loop',
      'src/dataplane/parts/part-faults.redis.test.ts',
    ],
    [
      'a crashed dispatcher keeps its claims',
      '    for (const lapsed of answer.lapsed) evict(lapsed);\n',
      '',
      'src/dataplane/parts/part-faults.redis.test.ts',
    ],
    [
      'the dispatcher does not wake up for a retry',
      '    if (answer.dueMs !== undefined) wakeAt(answer.dueMs);\n',
      '',
      'src/dataplane/parts/part-worker.redis.test.ts',
    ],
    [
      'a subscription that is behind is never advanced',
      'if (advancedVersion !== version || answer.hold !== undefined) advance();',
      '',
      'src/dataplane/parts/part-metrics.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/dataplane/parts/upkeep.ts', [
    [
      'a part that waits for tokens only requests them once',
      "    if (waiting !== 'no') return waiting === 'asked' ? waitedMs : shortMs;\n",
      '',
      'src/dataplane/parts/upkeep.redis.test.ts',
    ],
  ]),
];
