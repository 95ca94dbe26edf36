import { LIMITS_MUTANTS } from './limits-mutants.ts';
import { OF_RIVALS } from './rival-mutants.ts';
import { SECURITY_MUTANTS } from './security-mutants.ts';

/** A defect in a critical line of code, which must be detected by the tests. */
export interface Mutant {
  /** The effect of the mutant, described as the rule it violates. */
  readonly name: string;
  /** The path of the file, relative to the project folder. */
  readonly file: string;
  /** A text that occurs exactly once, and its replacement. */
  readonly from: string;
  readonly to: string;
  /** The test file that detects the mutant. By default, the quick tests of all parts are run. */
  readonly test?: string;
}

const COMPILE = 'src/core/routing/compile-routes.ts';
const APPLY = 'src/controller/routes/apply.ts';
const script = (name: string) => `src/redis/scripts/${name}.lua`;

function mutantsOf(file: string, list: readonly (readonly [name: string, from: string, to: string])[]): Mutant[] {
  return list.map(([name, from, to]) => ({ name, file, from, to }));
}

const PART = 'src/part/';

const OF_PARTS: readonly Mutant[] = [
  ...mutantsOf(`${PART}log/ingest.lua`, [
    ['a pause routes on', 'and not behind[slot]', ''],
    ['a subscription that closed is routed to', 'routeOf[slot] == 111 and', 'routeOf[slot] and'],
    ['what comes passes what waits', 'waitingOf[slot] == NONE and sendOf', 'sendOf'],
    ['a push goes beyond the limit of claims', ' and flightOf[slot] < limitOf[slot]', ''],
    ['claims are pushed to who is gone', 'r.untilMs > now and', ''],
    ['a duplicate is stored again', "if hash ~= '' and known[hash] then", 'if false then'],
    ['a duplicate within a batch is stored again', '      known[hash] = ref\n', ''],
    ['a part stores more than its account has granted', 'bytes + storedBytes + cost + idCost > meta.space', 'false'],
    ['a part without space is unlimited', "meta.storedMax and tonumber(meta.space or '0') or math.huge", 'math.huge'],
    ['a reference is charged twice', 'spent = spent + tokens', 'spent = spent + 2 * tokens'],
    ['events are routed that nobody paid for', 'or used + spent + tokens > granted', ''],
    ['activations that are not whole are routed by', "    hold, position = 'gates', tail", '    openLanes()'],
    [
      'pushes are not counted',
      'to.held, to.pushed = to.held + pushed, to.pushed + pushed',
      'to.held = to.held + pushed',
    ],
    ['a claim that is pushed is not counted', '    flightOf[slot] = flightOf[slot] + 1\n', ''],
    ['a batch has no bound', 'if references > REFERENCES and i > 0 then', 'if false then'],
    ['the log does not say where an event went', ", 'r', targets.packed, 'b'", ", 'r', '', 'b'"],
    ['an event that waits for somebody went to nobody', ' and not targets.isWaitedFor', ''],
    [
      'an event that got a reason has it again later',
      '    if not hold then\n      if #targets',
      '    if true then\n      if #targets',
    ],
  ]),
  ...mutantsOf(`${PART}log/claimed-bodies.lua`, [
    ['the body of an event that was claimed again is used', 'string.sub(claim, 2, 16) == ref and ', ''],
    ['a claim is used that another dispatcher has', ' and string.sub(claim, 17) == ARG_DISPATCHER', ''],
    ['an event is sent that was skipped while its body was read', ' and not isEnded(claim)', ''],
    ['a closed gate lets large events pass', ' and string.byte(row, 2) == OPEN', ''],
    ['a deactivated group key lets large events pass', " and offs[n] ~= '1'", ''],
    ['large events are sent to a disabled endpoint', ' and not isDisabled(healths[n], row)', ''],
    [
      'an endpoint that was enabled again gets no large events',
      'disabledMs and tonumber(string.sub(row, 14, 26)) <= tonumber(disabledMs)',
      'disabledMs',
    ],
  ]),
  ...mutantsOf(`${PART}lanes/routing.lua`, [
    ['a claimed lane is not told of what is behind it', "setClaim(lane, '+' .. string.sub(claim, 2))", ''],
    [
      'a lane that waits has no turn',
      'waitingOf[slot] = SOME\n    giveTurn(slot)\n    waiting = true',
      'waitingOf[slot] = SOME\n    waiting = true',
    ],
    ['a waiting lane is not told of what is behind its first event', "setState(lane, state .. '+')", ''],
  ]),
  ...mutantsOf(`${PART}lanes/message.lua`, [
    ['a body loses its rest', "    if rest ~= '' then pieces[#pieces + 1] = rest end\n", ''],
  ]),
  ...mutantsOf(`${PART}lanes/lanes.lua`, [
    [
      'a lane goes on waiting with a first event that is none',
      'if #state > NO_HEAD then setState',
      'if false then setState',
    ],
  ]),
  ...mutantsOf(`${PART}claims/claiming.lua`, [
    ['a first event that was removed is claimed', 'scores and scores[entryAt[i]] and entries', 'scores and entries'],
  ]),
  ...mutantsOf(`${PART}log/sender-ids.lua`, [
    ['an id is known for ever', 'if ref and now - msOf(ref) < DAY_MS then', 'if ref then'],
    ['an id of ours is stored for another event', 'return #id == #NO_REF', 'return false'],
    ['an event has two ids', `if entry and string.sub(entry[2][4], 1, 4) ~= '{"i"' then`, 'if entry then'],
    ['an id that was answered is refused', 'then known[ref] = ref end', 'then known[ref] = nil end'],
  ]),
  ...mutantsOf(`${PART}catchup/advance.lua`, [
    ['who is paused catches up', 'if routeOf[slot] == OPEN then\n      local ref', 'if true then\n      local ref'],
    ['a catch-up gives what came before the activation', 'if list[k + 1] < ref then', 'if true then'],
    ['a catch-up gives what came before the subscription', 'if isSince(list[k], ref) then', 'if true then'],
    [
      'a catch-up is live before the tail',
      'local isDone = passed == #entries and #entries < ENTRIES',
      'local isDone = true',
    ],
    ['a catch-up is free', "put('used', string.format('%.0f', used + spent))", ''],
    ['a slice is routed twice', "if slice then put('slice', slice) else", 'if false then else'],
    [
      'the nearest to the tail waits for the farthest',
      'ref > position then position = ref',
      'ref < position then position = ref',
    ],
    [
      'a part that is held back routes to who is behind',
      'return routeOf[slot] == OPEN and not positions[slot]',
      'return routeOf[slot] == OPEN',
    ],
    ['an event that waits went to nobody', ' and not isWaitedFor(groupKey, ref)', ''],
    ['who caught up is not live', "tonumber(meta.live or '0') + #members", "tonumber(meta.live or '0')"],
    ['an event counts for nobody once for each that catches up', 'if not cohort and routed == 0', 'if routed == 0'],
  ]),
  ...mutantsOf(`${PART}claims/completing.lua`, [
    ['anybody ends an attempt', 'if isClaimed and string.sub(claim, 17) == ARG_DISPATCHER then', 'if isClaimed then'],
    ['an attempt that ended holds its claim in the count', '      leaveFlight(slot)\n', ''],
    ['what is behind is left', "return 'o', string.byte(claim) ~= CLAIMED", "return 'o', false"],
    [
      'a late delivery frees the lane of who sends it again',
      'setClaim(lane, markEnded(claim))',
      'setClaim(lane, false)',
    ],
    ['a delivery that is said twice counts twice', 'if isClaimed and not isEnded(claim) then', 'if isClaimed then'],
    [
      'a lane with more behind it is never left',
      'if waitingOf[slot] == NONE and sendOf[slot] == 111',
      'if sendOf[slot] == 111',
    ],
    ['a lane that goes on asks no gate', ' and sendOf[slot] == 111 and paceOf', ' and paceOf'],
    ['a call does not see what it changed', 'if touched[lane] or changedClaims[lane] then writeLanes() end', ''],
    [
      'delivered of who was evicted is lost',
      "if redis.call('ZREM', KEY_PENDING, entry) == 0 then return 'g', false end",
      "do return 'g', false end",
    ],
    [
      'what a delivery leaves behind waits for its retry',
      "    elseif state == 'r' then\n      queueLane(lane, head)\n",
      '',
    ],
    [
      'the result of an earlier claim is that of the last attempt',
      "if outcome ~= 'd' then return 's', false end",
      "if outcome ~= 'd' then noteAttempt(slot, outcome, attempt) return 's', false end",
    ],
    ['who ends an attempt gives no turn', 'if waitingOf[slot] == SOME then giveTurn(slot) end', ''],
  ]),
  ...mutantsOf(`${PART}claims/plain-deliveries.lua`, [
    ['what is behind a plain delivery is left', 'if hasMore then follow[#follow + 1] = lane end', ''],
    ['a plain delivery loses its failed attempts', ' and not tries[n]', ''],
    ['a plain delivery that is in a call twice counts twice', ' and claimOf[lane] == nil then', ' then'],
    [
      'a plain delivery of an earlier holder frees the lane',
      "(hasMore or claim == 'c' .. ref .. ARG_DISPATCHER)",
      '(hasMore or claim)',
    ],
  ]),
  ...mutantsOf(`${PART}claims/exchange.lua`, [
    ['a late call is made', "if own and tonumber(ARG_NUMBER) <= own.number then return { 'LATE' } end", ''],
  ]),
  ...mutantsOf(`${PART}records/records.lua`, [
    ['a dead letter is recovered twice', "if outcome == 'x' then outcome = 'X' end", ''],
  ]),
  ...mutantsOf(`${PART}lanes/failed.lua`, [
    ['after many failures a dead letter is recovered twice', "'^(%*?),[^,]*', '%1'", "'^%*?,[^,]*', ''"],
  ]),
  ...mutantsOf(`${PART}owner/recovery.ts`, [
    ['a dead replay needs no other replay', 'replayId !== undefined || recovered', 'recovered'],
  ]),
  ...mutantsOf(`${PART}owner/send-test.lua`, [
    ['a test event is sent again for the same call', "if before then return { 'OK', before } end", ''],
  ]),
  ...mutantsOf('src/idempotency/begin-call.lua', [
    ['a key stands for two requests', "if known[1] ~= ARG_REQUEST then return { 'CONFLICT' } end", ''],
    ['a call is performed twice', "if known[4] then return { 'DONE', known[4] } end", ''],
    ['a call is performed twice at once', "if left > 0 then return { 'BUSY', left } end", ''],
    ['an interrupted call begins anew', "return { 'RUN', known[2] }", "return { 'RUN', ARG_SEED }"],
    ['an owner keeps any number of calls', '>= tonumber(ARG_MOST) then', '>= 2 ^ 52 then'],
  ]),
  ...mutantsOf('src/idempotency/end-call.lua', [
    [
      'who lost its turn ends the call',
      "if redis.call('HGET', KEY_CALL, 'turn') ~= ARG_TURN then return 'LOST' end",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}owner/enqueue.lua`, [
    ['a chunk of a replay that comes again is put again', "if before then return { 'OK', before } end", ''],
    ['what retention removes is replayed', "word ~= 'GONE' and ref > cut and", "word ~= 'GONE' and"],
  ]),
  ...mutantsOf(`${PART}tokens/account-grant.lua`, [
    ['an old report takes tokens back', 'if total > had then', 'if total ~= had then'],
    ['a late report of a ledger that was forgotten is counted again', 'if ARG_TERM ~= term then', 'if false then'],
    [
      'a ledger that a failover brings back is forgotten',
      "if endedAt then redis.call('ZREM', KEY_ENDED, field) end",
      '',
    ],
    ['an account grants what others hold', ' - heldByOthers(KEY_HOLD, ARG_PART)', ''],
    ['an account grants more than it has', 'if missing > free then', 'if false then'],
  ]),
  ...mutantsOf(`${PART}tokens/ended/ended-ledgers.lua`, [
    ['a ledger is forgotten as soon as it ends', 'APART_MS = 86400000, 60000', 'APART_MS = -1, 0'],
    ['an account never forgets a ledger', 'return oldest and', 'return false and'],
  ]),
  ...mutantsOf(`${PART}tokens/ended/account-forget-ledgers.lua`, [
    [
      'reports that were read before a ledger was forgotten are counted',
      "  redis.call('HINCRBY', KEY_SEEN, 'term', 1)\n",
      '',
    ],
    [
      'a ledger that ends again while its part is asked is forgotten',
      "if redis.call('ZSCORE', KEY_ENDED, field) ~= ARG_TIME then",
      'if false then',
    ],
    ['a ledger is forgotten without a look at its part', "ARGV[i + 1] == '1'", 'true'],
  ]),
  ...mutantsOf(`${PART}tokens/ended/holds-ledger.lua`, [
    [
      'a ledger that is still in use is forgotten',
      "meta[2] == ARG_LEDGER then return { 'OK' } end",
      "false then return { 'OK' } end",
    ],
    [
      'a ledger that is owed is forgotten',
      "if string.find(meta[3] or '', name .. ' ', 1, true) then return { 'OK' } end\n",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}tokens/settle-owed.lua`, [
    ['an account never notes the end of a ledger', "  ended = ended .. string.gsub(ARG_COUNTED, ' %d+;', ';')\n", ''],
  ]),
  ...mutantsOf(`${PART}tokens/give-back.lua`, [
    ['what is given back may be spent', "  redis.call('HSET', KEY_META, 'granted', meta[3] or '0')\n", ''],
  ]),
  ...mutantsOf(`${PART}tokens/ledger.lua`, [
    [
      'an account that is no longer the payer owes nothing',
      "    redis.call('HSET', KEY_META, 'owed', (m[5] or '') .. text)\n",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}space/account-space.lua`, [
    ['an account grants space that others have', 'tonumber(ARG_LIMIT) - others - bytes', 'tonumber(ARG_LIMIT) - bytes'],
    [
      'a lowered limit leaves the space that was granted',
      'if need <= free and amount - bytes > free then',
      'if false then',
    ],
    ['space is granted beyond the limit', 'if need > free then', 'if false then'],
    ['nothing is taken back before a refusal', 'if #holders > 0 then return', 'if false then return'],
    ['a part holds all of the limit', 'SLACK * parts', '1'],
    ['what a part has stored is not counted', 'math.max(tonumber(amount), bytes)', 'tonumber(amount)'],
  ]),
  ...mutantsOf(`${PART}space/account-recall.lua`, [
    ['what was granted during a recall is forgotten', 'elseif seq == ARG_SEQ then', 'else'],
    ['a part that is gone keeps its space', "  redis.call('HDEL', KEY_SPACE, ARG_PART)\n", ''],
  ]),
  ...mutantsOf(`${PART}space/apply-space.lua`, [
    ['an old grant is in force again', "tonumber(ARG_SEQ) > tonumber(meta[3] or '0')", 'true'],
    ['a grant of another limit is in force', 'meta[2] == ARG_LIMIT and ', ''],
  ]),
  ...mutantsOf(`${PART}space/shrink-space.lua`, [
    ['space that was taken back is used', "redis.call('HDEL', KEY_META, 'space')\n", ''],
    ['a later grant is taken back', 'if seq > tonumber(ARG_SEQ) then', 'if false then'],
  ]),
  ...mutantsOf(`${PART}stored/cluster-stored.lua`, [
    ['a part that was removed is noted', "redis.call('HGET', KEY_PARTS, ARG_NAME) == ARG_GEN", 'true'],
    ['a part without events is noted', " and ARG_BYTES ~= '0'", ''],
  ]),
  ...mutantsOf(`${PART}sweep/drain.lua`, [
    ['a stream waits for a deleted subscription', "page[1] == '0' and 'd0' or page[1]", 'page[1]'],
    ['a subscription that came back is not waited for', "if redis.call('HEXISTS', KEY_SUBS, slot) == 0 then", 'do'],
    ['only one page of deleted subscriptions is read', "#slots == PAGE and 'd' .. (from + PAGE) or '0'", "'0'"],
  ]),
  ...mutantsOf(`${PART}sweep/expire.lua`, [
    [
      'what expired before it was routed is not counted',
      "if cursor ~= '-' and cursor ~= '=' then lost, cursor = movePositions(last, cursor) end",
      "if cursor ~= '=' then cursor = '-' end",
    ],
    ['a claimed event does not expire', 'if waits[i] or claimed then', 'if waits[i] then'],
    ['results of delivered events are kept', '\n  forgetRecords(last, ref, number)\n', '\n'],
    ['results of delivered replays are kept', 'forgetDelivered(recordsOf(refs[replayedFrom[k]]), names)', ''],
    ['what expires goes on taking its quota', 'addBytes(-bytes)', ''],
  ]),
  ...mutantsOf(`${PART}records/delivered.lua`, [
    ['failed results are removed with their event', 'if string.byte(chunk, at + 5) ~= DELIVERED then', 'if false then'],
    ['only the newest results of an event are looked at', 'while read < full do', 'while false do'],
    [
      'results that were moved stay where they were',
      "    for number = left + 1, read do gone[#gone + 1] = name .. '\\0' .. number end\n",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}sweep/ending.lua`, [
    [
      'an expired event frees its lane during its attempt',
      'setClaim(lane, markEnded(claimOf[lane]))',
      'setClaim(lane, false)',
    ],
    ['the list of failed deliveries has no end', 'return listedOf[slot] >= MOST_LISTED', 'return false'],
  ]),
  ...mutantsOf(`${PART}sweep/forget-ids.lua`, [['ids go on taking the quota', 'addBytes(-ID_COST * ids)', '']]),
  ...mutantsOf(`${PART}sweep/forget-records.lua`, [
    ['failed deliveries go on taking the quota', 'addBytes(-bytes)', ''],
    [
      'names are kept for longer than their records',
      "if bytes > 0 then redis.call('HDEL', KEY_META, 'tidied') end",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}sweep/forget-slot.lua`, [
    ['a subscription that came back is emptied', "if redis.call('HEXISTS', KEY_SUBS, slot) == 1 then", 'if false then'],
  ]),
  ...mutantsOf(`${PART}owner/finish.lua`, [
    ['a skip lets a lane go on beside an attempt', 'setClaim(lane, markEnded(claim))', 'setClaim(lane, false)'],
  ]),
  ...mutantsOf(`${PART}owner/send-test.lua`, [
    ['test events under way do not count', 'open + countClaimed() >= most', 'open >= most'],
  ]),
  ...mutantsOf(`${PART}claims/taking.lua`, [
    ['a deactivated key is claimed', "redis.call('HGET', KEY_OFF, groupOf(lane)) == '1'", 'false'],
    ['claimed events that are apart in the log are lost', ' or not fieldsOf[sorted[at]]', ''],
    ['a retry is early', 'if due > now then return retryLane(lane, due) end', ''],
  ]),
  ...mutantsOf(`${PART}claims/claiming.lua`, [
    ['what is not sent to is claimed', 'if sendOf[slot] ~= 111 then return stopSlot(slot) end', ''],
    ['an open breaker lets all through', 'if isProbing then most = math.min(most, 1) end', ''],
    ['what lapsed twice is claimed together', 'not lapsedHeld and waitingIn', 'waitingIn'],
    ['retries fill the cap', 'free - math.floor(limitOf[slot] / 4)', 'free'],
    ['a slot at its limit keeps its turn for ever', 'return left and flightOf[slot] < limitOf[slot],', 'return false,'],
    ['who is stopped is never woken', "if untilMs then redis.call('ZADD'", "if false then redis.call('ZADD'"],
  ]),
  ...mutantsOf(`${PART}claims/exchange.lua`, [
    [
      'pushed claims are not held',
      'tonumber(ARG_HELD) - plain - count + pushed - tonumber(ARG_SEEN)',
      'tonumber(ARG_HELD) - plain - count',
    ],
    ['a fifth dispatcher claims', 'not own and others >= MOST_DISPATCHERS', 'false'],
    ['missing control data are not noticed', "meta[1] ~= '1' and 'CLOSED' or", ''],
  ]),
  {
    name: 'who stops tells nobody what it leaves',
    file: `${PART}claims/exchange.lua`,
    from: 'if limit == 0 and plain + count > 0 and',
    to: 'if false and',
    test: 'src/dataplane/parts/leaving.redis.test.ts',
  },
  ...mutantsOf(`${PART}claims/evict.lua`, [
    ['an active dispatcher is evicted', "if r and r.untilMs > now then return { 'HELD' } end", ''],
    ['an eviction goes on after an exchange', 'number ~= ARG_NUMBER', 'false'],
    ['an eviction can not be continued', "if page[1] == '0' then", 'do'],
    ['an evicted claim counts no lapse', 'writeTries(entry, attempts, lapses + 1, due, failed)', ''],
    ['an evicted claim stays in the count', '  leaveFlight(slot)\n', ''],
  ]),
  ...mutantsOf(`${PART}gate/gate.lua`, [
    ['a deactivation lets go on what is under way', "if open or flight ~= '0' then", 'if open then'],
    ['a deactivation lets go on what waits', "if open or flight ~= '0' then", "if flight ~= '0' then"],
    ['a deposed leader writes to a part', "if fence > tonumber(ARG_FENCE) then return { 'FENCED' } end", ''],
    ['a pause has no position', 'if not position then stand(slot, leaveLive(slot)) end', ''],
    [
      'a pause of a part that is held back loses what it holds',
      'local routed = hold and meta[5] or tail',
      'local routed = tail',
    ],
    ['a skip of a part that is held back skips nothing', 'if hold then stand(slot, tail) else', 'if false then else'],
    ['an opened subscription waits for the next event', 'if send == 111 then wakeSlot(slot) end', ''],
    ['who opens is not live', '    live = live + 1\n', ''],
    ['who is dropped stays live', 'if row and string.byte(row) == OPEN and position == 0 then leaveLive(a) end', ''],
    ['who closes stays live', 'elseif was == OPEN then leaveLive(slot) end', 'end'],
    ['what is lost is not counted anew', '    live = countLive()\n', ''],
    ['a slice counts who left', '  sliced = math.max(0, sliced - 1)\n', ''],
    ['what is skipped is not counted', 'if position and position < tail then redis', 'if false then redis'],
  ]),
  ...mutantsOf(`${PART}reasons/reasons.lua`, [
    ['the counts of an hour are lost', "    redis.call('HSET', KEY_REASONS, newest, said)\n", ''],
    ['hours are kept for ever', "if #old > 0 then redis.call('HDEL', KEY_REASONS, unpack(old)) end", ''],
    ['a clock that goes back loses an hour', 'tonumber(newest) < hour', 'tonumber(newest) ~= hour'],
  ]),
  ...mutantsOf(`${PART}catchup/skips.lua`, [
    ['a skip counts a page', "redis.call('HSET', KEY_SKIPS, slot .. last, till)", ''],
    ['a skip counts what came before the activation', 'if since and since < last then', 'if since then'],
    ['a skip counts who is closed', 'if route and route ~= CLOSED then', 'if true then'],
  ]),
  ...mutantsOf(`${PART}lanes/set-back.lua`, [
    [
      'a retry waits for as long as the clock went back',
      'if tried and tried > now and due > tried then',
      'if false then',
    ],
  ]),
  ...mutantsOf(`${PART}records/records.lua`, [
    ['a full chunk of records is lost', "  redis.call('HSET', KEYS[at], name .. '\\0' .. full, had)\n", ''],
    [
      'a delivery that was successful uses the quota like a failed one',
      "if outcome ~= 'd' then failedBytes",
      'if true then failedBytes',
    ],
    ['more bytes are given back than were charged', 'math.max(0, had + bytes)', 'had + bytes'],
  ]),
];

const OF_PROCESSES: readonly Mutant[] = [
  ...mutantsOf(`${PART}control/set-activation.ts`, [
    ['a change that reached some parts is not repeated', '    unfinished.add(pair);\n', ''],
    ['an activation is recorded, and nobody routes by it', 'if (isClosing || opened || again) {', 'if (isClosing) {'],
  ]),
  ...mutantsOf(`${PART}control/part-changes.ts`, [
    ['a new subscription is live before its keys', "row: { ...wanted.row, route: 'paused' } }", 'row: wanted.row }'],
    ['what nobody wants stays in its part', "...drops.map(slot => ({ kind: 'drop' as const, slot })),", ''],
    [
      'a part whose activations were damaged routes by them',
      "...(isDamaged ? [{ kind: 'unmark' as const }] : []),",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}control/part-writer.ts`, [
    [
      'SkipToNow skips nothing',
      "?.onUnblock === 'skip' && onUnblock === undefined",
      "?.onUnblock === 'skip' && onUnblock === 'skip'",
    ],
  ]),
  ...mutantsOf('src/dataplane/parts/part-worker.ts', [
    [
      'what was claimed long ago is sent',
      'return elapsed.nowMs() - atMs <= FRESH_MS && holdsClaims();',
      'return elapsed.nowMs() >= atMs;',
    ],
    [
      'a lost push is not looked for',
      'if (count.read(push.pushed, push.bytes, claims)) loop',
      'if (count.read(push.pushed, push.bytes, claims) && false) loop',
    ],
    ['who died keeps its claims', '    for (const lapsed of answer.lapsed) evict(lapsed);\n', ''],
    ['nobody wakes for a retry', '    if (answer.dueMs !== undefined) wakeAt(answer.dueMs);\n', ''],
    [
      'a subscription that is behind is never advanced',
      'if (advancedVersion !== version || answer.hold !== undefined) advance();',
      '',
    ],
    ['what is behind an attempt waits', 'if (book.markBehind(lane)) loop.completed();', 'book.markBehind(lane);'],
  ]),
  ...mutantsOf('src/dataplane/parts/upkeep.ts', [
    [
      'who waits for tokens asks once',
      "    if (waiting !== 'no') return waiting === 'asked' ? waitedMs : shortMs;\n",
      '',
    ],
  ]),
];

export const MUTANTS: readonly Mutant[] = [
  ...OF_PARTS,
  ...OF_PROCESSES,
  ...SECURITY_MUTANTS,
  ...LIMITS_MUTANTS,
  ...mutantsOf('src/core/routing/coverage.ts', [
    ['a block of a package covers nothing', 'packages === undefined ? []', 'true ? []'],
    ['a block of a stream covers nothing', "of(integration, 'CatalogStream', stream)", '[] as Placed<B>'],
  ]),
  ...mutantsOf('src/core/delivery/header-seal.ts', [
    ['a sealed value opens for another header', '/${header.toLowerCase()}`', '`'],
    ['a sealed value opens in a later subscription of the same name', 'header/${life}/', 'header/'],
    ['a sealed value follows the URL to another host', '/${origin}/', '/'],
    ['a value for a new subscription opens in any later one', ' <= NEW_WITHIN_MS', ' >= 0'],
  ]),
  ...mutantsOf('src/core/delivery/key-ring.ts', [
    [
      'a new file signs before it was chosen',
      'stateOf(found, state.keys.slice(0, state.keys.indexOf(state.first) + 1))',
      'stateOf(found, [])',
    ],
    ['the newest root key names objects', 'oldest = () => state.all[0]', 'oldest = () => state.all.at(-1)'],
    ['a secret without an id is derived from the first root key', '(id = oldest().id)', '(id = state.first.id)'],
    ['a retired root key still decrypts', 'files.isRetired ? files.all.slice(1) : files.all', 'files.all'],
    ['retiring a root key is not noticed', ' && isRetired === before.isRetired', ''],
  ]),
  ...mutantsOf('src/controller/root-keys.ts', [
    ['a root key is used that a replica does not have', 'reports.values()].every(', 'reports.values()].some('],
    [
      'a root key is used before the others know',
      '    await control.publishRootKey(deps.fence(), next.fingerprint);\n    keys.follow(next.fingerprint);',
      '    keys.follow(next.fingerprint);\n    await control.publishRootKey(deps.fence(), next.fingerprint);',
    ],
    ['endpoints stay encrypted with the old root key', '    deps.enqueueAll();\n', ''],
  ]),
  ...mutantsOf('src/facade/resources/subscriptions/subscription-request.ts', [
    ['a stored value is kept for another host', '} else if (moves) {', '} else if (false) {'],
  ]),
  ...mutantsOf('src/core/delivery/signing-secret.ts', [
    ['a secret comes back with its subscription', '.${salt}.${version}', '.${version}'],
    ['a secret without a salt is used', 'if (!salt) throw', "if (salt === '') throw"],
    [
      'a rotation of the root key changes every secret',
      '? [first, key] : [key, previousKey]',
      '? [first, key] : [first, key]',
    ],
    ['a secret is derived from a root key that is not there', "missing && (missing.id ?? 'oldest')", 'missing?.id'],
    ['the previous secret changes with the next one', 'each === version ? key : previousKey', 'key'],
  ]),
  ...mutantsOf('src/controller/kinds/subscription/salt.ts', [
    ['two leaders write two salts', 'metadata: { uid, resourceVersion }', 'metadata: { uid }'],
  ]),
  ...mutantsOf('src/controller/routes/tenant.ts', [
    ['routes without the salt pass for those with it', "=== undefined ? '' : '+'", "=== undefined ? '' : ''"],
  ]),
  ...mutantsOf('src/core/routing/subscription-route.ts', [
    ['a header without a value is left out', "    if ('fault' in field) return {", '    if (false) return {'],
    ['an endpoint is sent without a salt', 'endpoint !== undefined && salt !== undefined', 'endpoint !== undefined'],
    ['suspending pauses nothing', "live === 'Blocked' || live === 'Suspended'", "live === 'Blocked'"],
  ]),
  ...mutantsOf(COMPILE, [
    ['one SkipToNow is enough', 'blocks.every(({ spec })', 'blocks.some(({ spec })'],
    ['a declined integration is granted', ' && spec.declined !== true', ''],
    ['a revoked integration is granted', ' && spec.revoked !== true', ''],
    ['any workspace is granted', 'spec?.workspace === subscription.namespace', 'spec?.workspace !== undefined'],
    ['a duplicate is admitted', "if (taken) return 'Duplicate';", ''],
    ['a deprecated stream takes subscriptions', 'stream.spec.public !== true) return', 'false) return'],
    ['a deleting stream takes events', 'open && !deleting', 'open'],
    ['a workspace that is gone is routed', "if (!open) return 'WaitingForWorkspace';", ''],
  ]),
  ...mutantsOf('src/record/unowned-routes.ts', [
    ['what no object owns goes on', "route: 'closed', send: 'held', endpoint: ''", "endpoint: ''"],
    ['a queue without a stream takes events', "{ ...route, state: 'closing' }", '{ ...route }'],
  ]),
  ...mutantsOf(APPLY, [
    ['a new leader leaves closed activations open', 'if (!wantedKeys.has(groupKey)) await', 'if (false) await'],
  ]),
  ...mutantsOf('src/redis/connection/replicas.ts', [
    ['fewer replicas are enough', 'Number(confirmed) >= replicas', 'Number(confirmed) >= 0'],
    ['a write joins a WAIT that has begun', '      master.next = undefined;\n', ''],
    ["another master's replicas confirm a write", 'if (writtenTo !== confirmedBy) {', 'if (false) {'],
    ['a write that was only found is not confirmed', "redis.call('ping')", 'undefined'],
  ]),
  ...mutantsOf('src/redis/evaluation.ts', [
    ['writes are not confirmed', '    await confirming.confirm(master);\n', ''],
    ['reads wait for replicas', 'source.startsWith(READS_ONLY) || ', ''],
    ['results wait for replicas', ' || UNCONFIRMED.test(source)', ''],
  ]),
  ...mutantsOf(script('act'), [
    [
      'activating again moves the time',
      "if tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or '') then return 'SAME' end",
      '',
    ],
    ['a deposed controller opens a gate', "if have > fence then return 'FENCED' end", ''],
  ]),
  ...mutantsOf(script('mail'), [
    ['a deposed controller sends mails', "if have > fence then return { 'FENCED' } end", ''],
    ['an address gets a mail of each invitation', "if sent and by ~= uid and by ~= uid .. '+' then", 'if false then'],
    ['an account sends without limit', 'if most and not sent and count >= most then', 'if false then'],
    [
      'a mail counts forever',
      "local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now - period), 'LIMIT', 0, 1000)",
      'local old = {}',
    ],
  ]),
  ...mutantsOf(script('patch'), [
    ['a deposed controller writes routes', "if have > fence then return 'FENCED' end", ''],
  ]),
  ...mutantsOf('src/accounts/replays.ts', [
    [
      'of a replay only the first part comes',
      'filter(field => /^c\\d+$/.test(field))',
      "filter(field => field === 'c0')",
    ],
    ['what a replay brings is given back, too', 'else refund += tokens;', 'refund += tokens;'],
  ]),
  ...mutantsOf(script('debit'), [['a replay is not held to the plan', "if m[1] ~= 'Metered' and", 'if false and']]),
  ...mutantsOf('src/controller/routes/sync.ts', [
    [
      'a pause holds nothing',
      'const isPaused = () => deps.isPaused(name);',
      'const isPaused = () => name === undefined;',
    ],
  ]),
  ...mutantsOf(script('lead'), [
    [
      'the data of another installation is taken over',
      "if (m[1] or m[3]) and (m[4] or '') ~= ARGV[6] then",
      'if false then',
    ],
    ['each term names the Redis again', "'HSETNX', KEYS[1], 'store'", "'HSET', KEYS[1], 'store'"],
  ]),
  ...OF_RIVALS,
  ...mutantsOf('src/kube/instances/responsibility.ts', [
    ['all namespaces are ours', 'namespaces?.store.get(namespace)) === instance;', 'undefined) !== undefined;'],
    ['the label of a namespace says nothing', '(home?.instance ?? DEFAULT_INSTANCE)', 'DEFAULT_INSTANCE'],
    ['a Workspace that is late is missing', 'throw cacheBehind(`workspace ${name}`);', ''],
    ['what becomes ours is not looked at', 'view.turn(namespace, after === instance);', 'void view;'],
  ]),
  ...mutantsOf('src/controller/engine/turns.ts', [
    [
      'a tenant is served until it has nothing left to do',
      'const tenant = tenants.take();',
      'const tenant = [...keysOf.keys()][0];',
    ],
    ['deletions come last', "['deletion', 'change', 'background']", "['change', 'background', 'deletion']"],
  ]),
  ...mutantsOf('src/dataplane/dispatcher/http/answer-reader.ts', [
    ['an answer may have two lengths', 'head.length !== undefined || ', ''],
    ['100 announces an answer', 'if (status < 102)', 'if (status < 101)'],
    ['a connection with bytes of nobody is used again', 'hasSurplus = at < bytes.length;', 'hasSurplus = false;'],
    ['a header may have any name', 'if (match === null) return false;', 'if (match === null) return true;'],
    ['an answer has no end', 'if (wireBytes > WIRE_MAX)', 'if (wireBytes < 0)'],
  ]),
  ...mutantsOf('src/dataplane/dispatcher/http/connection.ts', [
    ['a connection that ended with an answer is used again', 'setImmediate(end);', 'end();'],
    [
      'what nobody asked for is let in',
      "if (current === undefined) return fail('invalid_response');",
      'if (!current) return;',
    ],
    ['an early answer leaves half a request behind', '(socket?.writableLength ?? 0) > 0', 'false'],
  ]),
];
