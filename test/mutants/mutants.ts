import { CACHE_MUTANTS } from './cache-mutants.ts';
import { CONTROL_MUTANTS } from './control-mutants.ts';
import { DELIVERY_MUTANTS } from './delivery-mutants.ts';
import { KIND_MUTANTS } from './kind-mutants.ts';
import { LIMITS_MUTANTS } from './limits-mutants.ts';
import { PAUSE_MUTANTS } from './pause-mutants.ts';
import { PROCESS_MUTANTS } from './process-mutants.ts';
import { REST_MUTANTS } from './rest-mutants.ts';
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
    ['a paused subscription is routed', 'and not behind[slot]', ''],
    ['a closed subscription is routed', 'routeOf[slot] == 111 and', 'routeOf[slot] and'],
    ['new events overtake waiting events', 'waitingOf[slot] == NONE and flightOf', 'flightOf'],
    ['a push exceeds the limit of claims', ' and flightOf[slot] < limitOf[slot]', ''],
    ['claims are pushed to a removed dispatcher', 'r.untilMs > now and', ''],
    ['a duplicate is stored', "if hash ~= '' and known[hash] then", 'if false then'],
    ['a duplicate in the same batch is stored', '      known[hash] = ref\n', ''],
    ['a part stores more than its account has granted', 'bytes + storedBytes + cost + extraCost > meta.space', 'false'],
    ['a part without space is unlimited', "meta.storedMax and tonumber(meta.space or '0') or math.huge", 'math.huge'],
    ['a reference is charged twice', 'spent = spent + tokens', 'spent = spent + 2 * tokens'],
    ['events are routed without tokens', 'or used + spent + tokens > granted', ''],
    ['incomplete activations are used for routing', "    hold, position = 'gates', tail", '    openLanes()'],
    [
      'a pushed claim is not counted',
      'routedOf[slot], flightOf[slot] = routedOf[slot] + 1, flightOf[slot] + 1',
      'routedOf[slot] = routedOf[slot] + 1',
    ],
    ['a batch is not limited', 'if references > REFERENCES and i > 0 then', 'if false then'],
    ['the log does not contain the slots of an event', ", 'r', targets.packed, 'b'", ", 'r', '', 'b'"],
    ['an event that waits for a subscription counts as not routed', ' and not targets.isWaitedFor', ''],
    [
      'a reason of an event is counted again later',
      '    if not hold then\n      if #targets',
      '    if true then\n      if #targets',
    ],
  ]),
  ...mutantsOf(`${PART}log/push.lua`, [
    [
      'pushes are not counted',
      'to.held, to.pushed = to.held + push.pushed, to.pushed + push.pushed',
      'to.held = to.held + push.pushed',
    ],
    ['a message lacks the events after the first 16', 'for i = 1, n, AT_ONCE do', 'for i = 1, 1, AT_ONCE do'],
  ]),
  ...mutantsOf(`${PART}log/claimed-bodies.lua`, [
    ['the body of an event that was claimed again is used', 'string.sub(claim, 2, 16) == ref and ', ''],
    ['a claim of another dispatcher is used', ' and string.sub(claim, 17) == ARG_DISPATCHER', ''],
    ['an event that was skipped while its body was read is sent', ' and not isEnded(claim)', ''],
    ['a closed gate does not stop large events', ' and string.byte(row, 2) == OPEN', ''],
    ['a deactivated group key does not stop large events', " and offs[n] ~= '1'", ''],
    ['large events are sent to a disabled endpoint', ' and not isDisabled(healths[n], row)', ''],
    [
      'an endpoint that was enabled again does not receive large events',
      'disabledMs and tonumber(string.sub(row, 14, 26)) <= tonumber(disabledMs)',
      'disabledMs',
    ],
  ]),
  ...mutantsOf(`${PART}lanes/routing.lua`, [
    ['a claimed lane is not marked when it has more events', "setClaim(lane, '+' .. string.sub(claim, 2))", ''],
    [
      'a waiting lane has no turn',
      'waitingOf[slot] = SOME\n    giveTurn(slot)\n    waiting = true',
      'waitingOf[slot] = SOME\n    waiting = true',
    ],
    ['a waiting lane is not marked when it has more events', "setState(lane, state .. '+')", ''],
  ]),
  ...mutantsOf(`${PART}lanes/message.lua`, [
    ['the end of a body is lost', "    if rest ~= '' then pieces[#pieces + 1] = rest end\n", ''],
  ]),
  ...mutantsOf(`${PART}lanes/lanes.lua`, [
    ['a lane waits with an outdated first event', 'if #state > NO_HEAD then setState', 'if false then setState'],
  ]),
  ...mutantsOf(`${PART}claims/claiming.lua`, [
    ['a removed first event is claimed', 'scores and scores[entryAt[i]] and entries', 'scores and entries'],
  ]),
  ...mutantsOf(`${PART}log/sender-ids.lua`, [
    ['an id is remembered forever', 'if ref and now - msOf(ref) < DAY_MS then', 'if ref then'],
    ['an id in the format of Sluice is stored for another event', 'return #id == #NO_REF', 'return false'],
    ['an event has two ids', `if entry and string.sub(entry[2][4], 1, 4) ~= '{"i"' then`, 'if entry then'],
    ['an id that was returned is refused', 'then known[ref] = ref end', 'then known[ref] = nil end'],
  ]),
  ...mutantsOf(`${PART}catchup/advance.lua`, [
    [
      'a paused subscription is advanced',
      'if routeOf[slot] == OPEN then\n      local ref',
      'if true then\n      local ref',
    ],
    ['events from before the activation are routed later', 'if list[k + 1] < ref then', 'if true then'],
    ['events from before the subscription are routed later', 'if isSince(list[k], ref) then', 'if true then'],
    [
      'a subscription is live before the tail',
      'local isDone = passed == #entries and #entries < ENTRIES',
      'local isDone = true',
    ],
    ['events that are routed later are free', "put('used', string.format('%.0f', used + spent))", ''],
    ['a slice is routed twice', "if slice then put('slice', slice) else", 'if false then else'],
    [
      'the subscription nearest to the tail waits for the farthest',
      'ref > position then position = ref',
      'ref < position then position = ref',
    ],
    [
      'a held part routes to a subscription that is behind',
      'return routeOf[slot] == OPEN and not positions[slot]',
      'return routeOf[slot] == OPEN',
    ],
    ['a waiting event counts as not routed', ' and not isWaitedFor(groupKey, ref)', ''],
    [
      'a subscription that was advanced to the tail is not live',
      "tonumber(meta.live or '0') + #members",
      "tonumber(meta.live or '0')",
    ],
    [
      'an event counts as not routed for each subscription that is advanced',
      'if not cohort and routed == 0',
      'if routed == 0',
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
    ['failed attempts exceed the limit', 'while openCost(longer) > before do longer = withoutOldest(longer) end', ''],
    ['a successful delivery still uses the quota as an open one', 'addBytes(-OPEN_COST * count)', ''],
  ]),
  ...mutantsOf(`${PART}owner/enqueue.lua`, [
    ['results of delivered replays stay that nobody can read', "takeRecord(at, name, ARG_SLOT, 'd')", 'nil'],
  ]),
  ...mutantsOf(`${PART}claims/exchange.lua`, [
    ['a late call is executed', "if own and tonumber(ARG_NUMBER) <= own.number then return { 'LATE' } end", ''],
  ]),
  ...mutantsOf(`${PART}records/records.lua`, [
    ['a dead letter is recovered twice', "if outcome == 'x' then outcome = 'X' end", ''],
  ]),
  ...mutantsOf(`${PART}lanes/failed.lua`, [
    ['a dead letter with many failures is recovered twice', "'^(%*?%d*),[^,]*', '%1'", "'^%*?%d*,[^,]*', ''"],
  ]),
  ...mutantsOf(`${PART}owner/recovery.ts`, [
    ['a dead replay does not require another replay', 'replayId !== undefined || recovered', 'recovered'],
  ]),
  ...mutantsOf(`${PART}owner/send-test.lua`, [
    ['a test event is sent again for the same call', "if before then return { 'OK', before } end", ''],
  ]),
  ...mutantsOf('src/idempotency/begin-call.lua', [
    ['a key is used for two requests', "if known[1] ~= ARG_REQUEST then return { 'CONFLICT' } end", ''],
    ['a call is performed twice', "if known[4] then return { 'DONE', known[4] } end", ''],
    ['a call is performed twice concurrently', "if left > 0 then return { 'BUSY', left } end", ''],
    ['an interrupted call starts with a new seed', "return { 'RUN', known[2] }", "return { 'RUN', ARG_SEED }"],
    ['an owner can store any number of calls', '>= tonumber(ARG_MOST) then', '>= 2 ^ 52 then'],
  ]),
  ...mutantsOf('src/idempotency/end-call.lua', [
    [
      'a replica that lost its turn ends the call',
      "if redis.call('HGET', KEY_CALL, 'turn') ~= ARG_TURN then return 'LOST' end",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}owner/enqueue.lua`, [
    ['a repeated chunk of a replay is enqueued again', "if before then return { 'OK', before } end", ''],
    ['expired events are replayed', "word ~= 'GONE' and ref > cut and", "word ~= 'GONE' and"],
  ]),
  ...mutantsOf(`${PART}tokens/account-grant.lua`, [
    ['an old report reclaims tokens', 'if total > had then', 'if total ~= had then'],
    ['a late report of a removed ledger is counted again', 'if ARG_TERM ~= term then', 'if false then'],
    ['a ledger restored by a failover is removed', "if endedAt then redis.call('ZREM', KEY_ENDED, field) end", ''],
    ['an account grants tokens that other parts hold', ' - heldByOthers(KEY_HOLD, ARG_PART)', ''],
    ['an account grants more than it has', 'if missing > free then', 'if false then'],
  ]),
  ...mutantsOf(`${PART}tokens/ended/ended-ledgers.lua`, [
    ['a ledger is removed as soon as it ends', 'APART_MS = 86400000, 60000', 'APART_MS = -1, 0'],
    ['an account never removes a ledger', 'return oldest and', 'return false and'],
  ]),
  ...mutantsOf(`${PART}tokens/ended/account-forget-ledgers.lua`, [
    [
      'reports that were read before a ledger was removed are counted',
      "  redis.call('HINCRBY', KEY_SEEN, 'term', 1)\n",
      '',
    ],
    [
      'a ledger that ends again while its part is read is removed',
      "if redis.call('ZSCORE', KEY_ENDED, field) ~= ARG_TIME then",
      'if false then',
    ],
    ['a ledger is removed without reading its part', "ARGV[i + 1] == '1'", 'true'],
  ]),
  ...mutantsOf(`${PART}tokens/ended/holds-ledger.lua`, [
    ['a ledger in use is removed', "meta[2] == ARG_LEDGER then return { 'OK' } end", "false then return { 'OK' } end"],
    [
      'an unsettled ledger is removed',
      "if string.find(meta[3] or '', name .. ' ', 1, true) then return { 'OK' } end\n",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}tokens/settle-owed.lua`, [
    [
      'an account does not record the end of a ledger',
      "  ended = ended .. string.gsub(ARG_COUNTED, ' %d+;', ';')\n",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}tokens/give-back.lua`, [
    ['returned tokens can be spent', "  redis.call('HSET', KEY_META, 'granted', meta[3] or '0')\n", ''],
  ]),
  ...mutantsOf(`${PART}tokens/ledger.lua`, [
    ['a previous payer does not owe anything', "    redis.call('HSET', KEY_META, 'owed', (m[5] or '') .. text)\n", ''],
  ]),
  ...mutantsOf(`${PART}space/account-space.lua`, [
    [
      'an account grants space that other parts hold',
      'tonumber(ARG_LIMIT) - others - bytes',
      'tonumber(ARG_LIMIT) - bytes',
    ],
    [
      'a lowered limit does not reclaim granted space',
      'if need <= free and amount - bytes > free then',
      'if false then',
    ],
    ['space is granted beyond the limit', 'if need > free then', 'if false then'],
    ['no space is reclaimed before a refusal', 'if #holders > 0 then return', 'if false then return'],
    ['a part holds the whole limit', 'SLACK * parts', '1'],
    ['the stored bytes of a part are not counted', 'math.max(tonumber(amount), bytes)', 'tonumber(amount)'],
  ]),
  ...mutantsOf(`${PART}space/account-recall.lua`, [
    ['space granted during a recall is lost', 'elseif seq == ARG_SEQ then', 'else'],
    ['a removed part keeps its space', "  redis.call('HDEL', KEY_SPACE, ARG_PART)\n", ''],
  ]),
  ...mutantsOf(`${PART}space/apply-space.lua`, [
    ['an old grant is used again', "tonumber(ARG_SEQ) > tonumber(meta[3] or '0')", 'true'],
    ['a grant of another limit is used', 'meta[2] == ARG_LIMIT and ', ''],
  ]),
  ...mutantsOf(`${PART}space/shrink-space.lua`, [
    ['reclaimed space is used', "redis.call('HDEL', KEY_META, 'space')\n", ''],
    ['a later grant is reclaimed', 'if seq > tonumber(ARG_SEQ) then', 'if false then'],
  ]),
  ...mutantsOf(`${PART}stored/cluster-stored.lua`, [
    ['the stored bytes of a removed part are recorded', "redis.call('HGET', KEY_PARTS, ARG_NAME) == ARG_GEN", 'true'],
    ['the stored bytes of a part without events are recorded', " and ARG_BYTES ~= '0'", ''],
  ]),
  ...mutantsOf(`${PART}sweep/drain.lua`, [
    ['a stream waits for a deleted subscription', "page[1] == '0' and 'd0' or page[1]", 'page[1]'],
    ['a recreated subscription does not delay the removal', "if redis.call('HEXISTS', KEY_SUBS, slot) == 0 then", 'do'],
    ['only one page of deleted subscriptions is read', "#slots == PAGE and 'd' .. (from + PAGE) or '0'", "'0'"],
  ]),
  ...mutantsOf(`${PART}sweep/expire.lua`, [
    [
      'events that expire before they are routed are not counted',
      "if cursor ~= '-' and cursor ~= '=' then lost, cursor = movePositions(last, cursor) end",
      "if cursor ~= '=' then cursor = '-' end",
    ],
    ['a claimed event does not expire', 'if waits[i] or claimed then', 'if waits[i] then'],
    ['results of delivered events are kept', '\n  forgetRecords(last, ref, number)\n', '\n'],
    ['results of delivered replays are kept', 'forgetDelivered(recordsOf(refs[replayedFrom[k]]), names)', ''],
    ['expired events still use the quota', 'addBytes(-bytes)', ''],
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
  ...mutantsOf(`${PART}sweep/ending.lua`, [
    [
      'an expired event releases its lane during its attempt',
      'setClaim(lane, markEnded(claimOf[lane]))',
      'setClaim(lane, false)',
    ],
    ['an expired delivery still uses the quota as an open one', 'addBytes(-openCost(failed))', ''],
    ['the list of failed deliveries is not limited', 'return listedOf[slot] >= MOST_LISTED', 'return false'],
  ]),
  ...mutantsOf(`${PART}sweep/forget-ids.lua`, [['removed ids still use the quota', 'addBytes(-ID_COST * ids)', '']]),
  ...mutantsOf(`${PART}sweep/forget-records.lua`, [
    ['removed failed deliveries still use the quota', 'addBytes(-bytes)', ''],
    ['names are kept longer than their records', "if bytes > 0 then redis.call('HDEL', KEY_META, 'tidied') end", ''],
  ]),
  ...mutantsOf(`${PART}sweep/forget-slot.lua`, [
    ['open deliveries of a deleted subscription still use the quota', 'addBytes(-openCost(failed))', ''],
    [
      'the events of a recreated subscription are removed',
      "if redis.call('HEXISTS', KEY_SUBS, slot) == 1 then",
      'if false then',
    ],
  ]),
  ...mutantsOf(`${PART}owner/finish.lua`, [
    ['a skipped delivery still uses the quota as an open one', 'addBytes(-openCost(failed))', ''],
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
  ...mutantsOf(`${PART}gate/gate.lua`, [
    [
      'a deactivation does not stop the lane of an attempt in progress',
      "if open or flight ~= '0' then",
      'if open then',
    ],
    ['a deactivation does not stop waiting events', "if open or flight ~= '0' then", "if flight ~= '0' then"],
    ['a deposed leader writes to a part', "if fence > tonumber(ARG_FENCE) then return { 'FENCED' } end", ''],
    ['a pause has no position', 'if not position then stand(slot, leaveLive(slot)) end', ''],
    ['a pause of a held part loses its events', 'local routed = hold and meta[5] or tail', 'local routed = tail'],
    ['a skip in a held part does not skip anything', 'if hold then stand(slot, tail) else', 'if false then else'],
    ['an opened subscription waits for the next event', 'if send == 111 then wakeSlot(slot) end', ''],
    ['an opened subscription is not live', '    live = live + 1\n', ''],
    [
      'a dropped subscription stays live',
      'if row and string.byte(row) == OPEN and position == 0 then leaveLive(a) end',
      '',
    ],
    ['a closed subscription stays live', 'elseif was == OPEN then leaveLive(slot) end', 'end'],
    ['live subscriptions are not counted again after a loss', '    live = countLive()\n', ''],
    ['a slice counts removed subscriptions', '  sliced = math.max(0, sliced - 1)\n', ''],
    ['skipped events are not counted', 'if position and position < tail then redis', 'if false then redis'],
  ]),
  ...mutantsOf(`${PART}reasons/reasons.lua`, [
    ['the counts of an hour are lost', "    redis.call('HSET', KEY_REASONS, newest, said)\n", ''],
    ['hours are kept forever', "if #old > 0 then redis.call('HDEL', KEY_REASONS, unpack(old)) end", ''],
    ['an hour is lost if the clock is set back', 'tonumber(newest) < hour', 'tonumber(newest) ~= hour'],
  ]),
  ...mutantsOf(`${PART}catchup/skips.lua`, [
    ['a skip only counts one page', "redis.call('HSET', KEY_SKIPS, slot .. last, till)", ''],
    ['a skip counts events from before the activation', 'if since and since < last then', 'if since then'],
    ['a skip counts closed subscriptions', 'if route and route ~= CLOSED then', 'if true then'],
  ]),
  ...mutantsOf(`${PART}lanes/set-back.lua`, [
    [
      'a retry is delayed after the clock was set back',
      'if tried and tried > now and due > tried then',
      'if false then',
    ],
  ]),
  ...mutantsOf(`${PART}records/records.lua`, [
    ['a full chunk of records is lost', "  redis.call('HSET', KEYS[at], name .. '\\0' .. full, had)\n", ''],
    [
      'a successful delivery uses the quota like a failed one',
      '  elseif isListed then\n    failedBytes',
      '  else\n    failedBytes',
    ],
    ['test events use the quota of the producer', '(name ~= ref or isTestRef(ref))', 'false'],
    ['failed replays are not limited', 'if bytes > MOST_BYTES then return false end', ''],
    ['more bytes are released than were charged', 'math.max(0, had + bytes)', 'had + bytes'],
  ]),
];

const OF_PROCESSES: readonly Mutant[] = [
  ...mutantsOf(`${PART}control/set-activation.ts`, [
    ['a change that reached some parts is not repeated', '    unfinished.add(pair);\n', ''],
    [
      'an activation is recorded without being used for routing',
      'if (isClosing || opened || again) {',
      'if (isClosing) {',
    ],
  ]),
  ...mutantsOf(`${PART}control/part-changes.ts`, [
    ['a new subscription is live before its keys', "row: { ...wanted.row, route: 'paused' } }", 'row: wanted.row }'],
    ['an unwanted subscription stays in its part', "...drops.map(slot => ({ kind: 'drop' as const, slot })),", ''],
    ['damaged activations are used for routing', "...(isDamaged ? [{ kind: 'unmark' as const }] : []),", ''],
  ]),
  ...mutantsOf(`${PART}control/part-writer.ts`, [
    [
      'SkipToNow does not skip anything',
      "?.onUnblock === 'skip' && onUnblock === undefined",
      "?.onUnblock === 'skip' && onUnblock === 'skip'",
    ],
  ]),
  ...mutantsOf('src/dataplane/parts/part-worker.ts', [
    [
      'an old claim is sent',
      'return elapsed.nowMs() - atMs <= FRESH_MS && holdsClaims();',
      'return elapsed.nowMs() >= atMs;',
    ],
    [
      'a lost push is not detected',
      'if (count.read(push.pushed, push.bytes, claims)) loop',
      'if (count.read(push.pushed, push.bytes, claims) && false) loop',
    ],
    ['a crashed dispatcher keeps its claims', '    for (const lapsed of answer.lapsed) evict(lapsed);\n', ''],
    ['the dispatcher does not wake up for a retry', '    if (answer.dueMs !== undefined) wakeAt(answer.dueMs);\n', ''],
    [
      'a subscription that is behind is never advanced',
      'if (advancedVersion !== version || answer.hold !== undefined) advance();',
      '',
    ],
  ]),
  ...mutantsOf('src/dataplane/parts/upkeep.ts', [
    [
      'a part that waits for tokens only requests them once',
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
  ...PAUSE_MUTANTS,
  ...CACHE_MUTANTS,
  ...CONTROL_MUTANTS,
  ...DELIVERY_MUTANTS,
  ...REST_MUTANTS,
  ...KIND_MUTANTS,
  ...PROCESS_MUTANTS,
  ...mutantsOf('src/core/routing/coverage.ts', [
    ['a block of a package has no effect', 'packages === undefined ? []', 'true ? []'],
    ['a block of a stream has no effect', "of(integration, 'CatalogStream', stream)", '[] as Placed<B>'],
  ]),
  ...mutantsOf('src/core/delivery/header-seal.ts', [
    ['a sealed value can be decrypted for another header', '/${header.toLowerCase()}`', '`'],
    ['a sealed value can be decrypted for a later subscription with the same name', 'header/${life}/', 'header/'],
    ['a sealed value can be decrypted for another host', '/${origin}/', '/'],
    ['a value for a new subscription can be decrypted for any later one', ' <= NEW_WITHIN_MS', ' >= 0'],
  ]),
  ...mutantsOf('src/core/delivery/key-ring.ts', [
    [
      'a new key is used before it is the first key',
      'stateOf(found, state.keys.slice(0, state.keys.indexOf(state.first) + 1))',
      'stateOf(found, [])',
    ],
    ['the newest root key is used for object names', 'oldest = () => state.all[0]', 'oldest = () => state.all.at(-1)'],
    ['a secret without an id is derived from the first root key', '(id = oldest().id)', '(id = state.first.id)'],
    ['a retired root key still decrypts', 'files.isRetired ? files.all.slice(1) : files.all', 'files.all'],
    ['retiring a root key is ignored', ' && isRetired === before.isRetired', ''],
  ]),
  ...mutantsOf('src/controller/root-keys.ts', [
    ['a root key is used although a replica does not have it', 'reports.values()].every(', 'reports.values()].some('],
    [
      'a root key is used before it is published',
      '    await control.publishRootKey(deps.fence(), next.fingerprint);\n    keys.follow(next.fingerprint);',
      '    keys.follow(next.fingerprint);\n    await control.publishRootKey(deps.fence(), next.fingerprint);',
    ],
    ['endpoints stay encrypted with the old root key', '    deps.enqueueAll();\n', ''],
  ]),
  ...mutantsOf('src/facade/resources/subscriptions/subscription-request.ts', [
    ['a stored value is kept for another host', '} else if (moves) {', '} else if (false) {'],
  ]),
  ...mutantsOf('src/core/delivery/signing-secret.ts', [
    ['a recreated subscription has its old secret', '.${salt}.${version}', '.${version}'],
    ['a secret without a salt is used', 'if (!salt) throw', "if (salt === '') throw"],
    [
      'a rotation of the root key changes every secret',
      '? [first, key] : [key, previousKey]',
      '? [first, key] : [first, key]',
    ],
    ['a secret is derived without its root key', "missing && (missing.id ?? 'oldest')", 'missing?.id'],
    ['the previous secret changes with the next one', 'each === version ? key : previousKey', 'key'],
  ]),
  ...mutantsOf('src/controller/kinds/subscription/salt.ts', [
    ['two leaders can write different salts', 'metadata: { uid, resourceVersion }', 'metadata: { uid }'],
  ]),
  ...mutantsOf('src/controller/routes/tenant.ts', [
    ['routes with and without the salt have the same version', "=== undefined ? '' : '+'", "=== undefined ? '' : ''"],
  ]),
  ...mutantsOf('src/core/routing/subscription-route.ts', [
    ['a header without a value is omitted', "    if ('fault' in field) return {", '    if (false) return {'],
    ['an endpoint is sent without a salt', 'endpoint !== undefined && salt !== undefined', 'endpoint !== undefined'],
    ['suspending does not pause anything', "live === 'Blocked' || live === 'Suspended'", "live === 'Blocked'"],
  ]),
  ...mutantsOf(COMPILE, [
    ['a single SkipToNow is sufficient', 'blocks.every(({ spec })', 'blocks.some(({ spec })'],
    ['a declined integration is a grant', ' && spec.declined !== true', ''],
    ['a revoked integration is a grant', ' && spec.revoked !== true', ''],
    ['any workspace has a grant', 'spec?.workspace === subscription.namespace', 'spec?.workspace !== undefined'],
    ['a duplicate is admitted', "if (taken) return 'Duplicate';", ''],
    ['a deprecated stream accepts subscriptions', 'stream.spec.public !== true) return', 'false) return'],
    ['a stream that is being deleted accepts events', 'open && !deleting', 'open'],
    ['the events of a deleted workspace are routed', "if (!open) return 'WaitingForWorkspace';", ''],
  ]),
  ...mutantsOf('src/record/unowned-routes.ts', [
    ['routes without an object remain open', "route: 'closed', send: 'held', endpoint: ''", "endpoint: ''"],
    ['a queue without a stream accepts events', "{ ...route, state: 'closing' }", '{ ...route }'],
  ]),
  ...mutantsOf(APPLY, [
    ['a new leader leaves closed activations open', 'if (!wantedKeys.has(groupKey)) await', 'if (false) await'],
  ]),
  ...mutantsOf('src/redis/connection/replicas.ts', [
    ['fewer replicas are sufficient', 'Number(confirmed) >= replicas', 'Number(confirmed) >= 0'],
    ['a write joins a WAIT that has already started', '      master.next = undefined;\n', ''],
    ["another master's replicas confirm a write", 'if (writtenTo !== confirmedBy) {', 'if (false) {'],
    ['a write that was already executed is not confirmed', "redis.call('ping')", 'undefined'],
  ]),
  ...mutantsOf('src/redis/evaluation.ts', [
    ['writes are not confirmed', '    await confirming.confirm(master);\n', ''],
    ['reads wait for replicas', 'onlyReads(source) || ', ''],
    ['results wait for replicas', ' || UNCONFIRMED.test(source)', ''],
  ]),
  ...mutantsOf(script('act'), [
    [
      'a repeated activation changes its time',
      "if tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or '') then return 'SAME' end",
      '',
    ],
    ['a deposed controller opens a gate', "if have > fence then return 'FENCED' end", ''],
  ]),
  ...mutantsOf(script('mail'), [
    ['a deposed controller sends emails', "if have > fence then return { 'FENCED' } end", ''],
    [
      'an address receives an email for each invitation',
      "if sent and by ~= uid and by ~= uid .. '+' then",
      'if false then',
    ],
    ['an account can send any number of emails', 'if most and not sent and count >= most then', 'if false then'],
    [
      'an email is counted forever',
      "local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now - period), 'LIMIT', 0, 1000)",
      'local old = {}',
    ],
  ]),
  ...mutantsOf(script('patch'), [
    ['a deposed controller writes routes', "if have > fence then return 'FENCED' end", ''],
  ]),
  ...mutantsOf('src/accounts/replays.ts', [
    [
      'only the first chunk of a replay is delivered',
      'filter(field => /^c\\d+$/.test(field))',
      "filter(field => field === 'c0')",
    ],
    ['the tokens of delivered replays are refunded', 'else refund += tokens;', 'refund += tokens;'],
  ]),
  ...mutantsOf(script('debit'), [['a replay is not limited by the plan', "if m[1] ~= 'Metered' and", 'if false and']]),
  ...mutantsOf('src/controller/routes/sync.ts', [
    [
      'a pause does not hold anything',
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
    ['each term changes the name of the Redis', "'HSETNX', KEYS[1], 'store'", "'HSET', KEYS[1], 'store'"],
  ]),
  ...OF_RIVALS,
  ...mutantsOf('src/kube/instances/responsibility.ts', [
    [
      'all namespaces belong to the installation',
      'namespaces?.store.get(namespace)) === instance;',
      'undefined) !== undefined;',
    ],
    ['the label of a namespace is ignored', '(home?.instance ?? DEFAULT_INSTANCE)', 'DEFAULT_INSTANCE'],
    ['a Workspace that is not in the cache yet is treated as missing', 'throw cacheBehind(`workspace ${name}`);', ''],
    [
      "objects that become the installation's are not reconciled",
      'view.turn(namespace, after === instance);',
      'void view;',
    ],
  ]),
  ...mutantsOf('src/controller/engine/turns.ts', [
    [
      'a tenant keeps its turn until it has no more work',
      'const tenant = tenants.take();',
      'const tenant = [...keysOf.keys()][0];',
    ],
    ['deletions come last', "['deletion', 'change', 'background']", "['change', 'background', 'deletion']"],
  ]),
  ...mutantsOf('src/dataplane/dispatcher/http/answer-reader.ts', [
    ['a response can have two lengths', 'head.length !== undefined || ', ''],
    ['101 is skipped like other informational responses', 'if (status < 100 || status === 101)', 'if (status < 100)'],
    ['a connection with surplus data is reused', 'hasSurplus = at < bytes.length;', 'hasSurplus = false;'],
    ['a header can have any name', 'if (match === null) return false;', 'if (match === null) return true;'],
    ['the size of a response is not limited', 'if (wireBytes > WIRE_MAX)', 'if (wireBytes < 0)'],
  ]),
  {
    name: '100 is refused',
    file: 'src/dataplane/dispatcher/http/answer-reader.ts',
    from: 'if (status < 100 || status === 101)',
    to: 'if (status <= 101)',
    test: 'src/dataplane/dispatcher/endpoint-client-answers.test.ts',
  },
  ...mutantsOf('src/dataplane/dispatcher/http/connection.ts', [
    [
      'an unexpected response is accepted',
      "if (current === undefined) return fail('invalid_response');",
      'if (!current) return;',
    ],
  ]),
  {
    name: 'a connection that was closed after a response is reused',
    file: 'src/dataplane/dispatcher/http/connection.ts',
    from: 'setImmediate(end);',
    to: 'end();',
    test: 'src/dataplane/dispatcher/endpoint-client-tls.test.ts',
  },
  {
    name: 'while draining, a request is processed behind the last response',
    file: 'src/http/last-responses.ts',
    from: 'latest.req === request || !latest.headersSent',
    to: 'latest.req === request',
    test: 'src/http/last-responses.test.ts',
  },
  {
    name: 'while draining, a request gets no response because of one sent before',
    file: 'src/http/last-responses.ts',
    from: 'if (latest.req === request || !latest.headersSent) connection',
    to: 'connection',
    test: 'src/http/last-responses.test.ts',
  },
  {
    name: 'a connection with an incomplete request is reused',
    file: 'src/dataplane/dispatcher/http/connection.ts',
    from: '(socket?.writableLength ?? 0) > 0',
    to: 'false',
    test: 'src/dataplane/dispatcher/endpoint-client-answers.test.ts',
  },
];
