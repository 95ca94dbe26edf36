/** A wrong change of one decisive place: the tests have to notice it. */
export interface Mutant {
  /** What it makes wrong, in the words of a rule that no longer holds. */
  readonly name: string;
  /** In the project's folder. */
  readonly file: string;
  /** Text that stands there exactly once, and what stands there instead. */
  readonly from: string;
  readonly to: string;
}

const COMPILE = 'src/core/routing/compile-routes.ts';
const PLAN = 'src/redis/control-plan.ts';
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
    ['the log does not say where an event went', ", 'r', table.concat(slots))", ", 'r', '')"],
    ['an event that waits for somebody went to nobody', ' and not targets.isWaitedFor', ''],
    [
      'an event that got a reason has it again later',
      '    if not hold then\n      if #targets',
      '    if true then\n      if #targets',
    ],
  ]),
  ...mutantsOf(`${PART}lanes/routing.lua`, [
    ['a claimed lane is not told of what is behind it', "setClaim(lane, '+' .. string.sub(claim, 2))", ''],
    ['a lane that waits has no turn', '    giveTurn(slot)\n    waiting = true', '    waiting = true'],
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
    ['an attempt that ended holds its claim in the count', '      flightOf[slot] = flightOf[slot] - 1\n', ''],
    ['what is behind is left', 'if string.byte(claim) ~= CLAIMED then follow[#follow + 1] = lane end', ''],
    [
      'a late delivery frees the lane of who sends it again',
      'setClaim(lane, markEnded(claim))',
      'setClaim(lane, false)',
    ],
    ['a delivery that is said twice counts twice', "outcome == 'd' and not isEnded(claim) then", "outcome == 'd' then"],
    [
      'a lane with more behind it is never left',
      'if waitingOf[slot] == NONE and sendOf[slot] == 111',
      'if sendOf[slot] == 111',
    ],
    ['a lane that goes on asks no gate', ' and sendOf[slot] == 111 and paceOf', ' and paceOf'],
    ['a call does not see what it changed', 'if touched[lane] then writeLanes() end', ''],
    [
      'delivered of who was evicted is lost',
      "elseif outcome == 'd' and redis.call('ZREM', KEY_PENDING, entry) == 1 then",
      'elseif false then',
    ],
    [
      'what a delivery leaves behind waits for its retry',
      "  elseif state == 'r' then\n    queueLane(lane, head)\n",
      '',
    ],
    ['who ends an attempt gives no turn', 'if waitingOf[slot] == SOME then giveTurn(slot) end', ''],
  ]),
  ...mutantsOf(`${PART}claims/exchange.lua`, [
    ['a late call is made', "if own and tonumber(ARG_NUMBER) <= own.number then return { 'LATE' } end", ''],
  ]),
  ...mutantsOf(`${PART}owner/enqueue.lua`, [
    ['what retention removes is replayed', "word ~= 'GONE' and ref > cut and", "word ~= 'GONE' and"],
  ]),
  ...mutantsOf(`${PART}owner/send-test.lua`, [
    ['test events under way do not count', 'open + countClaimed() >= most', 'open >= most'],
  ]),
  ...mutantsOf(`${PART}claims/taking.lua`, [
    ['a deactivated key is claimed', "redis.call('HGET', KEY_OFF, groupOf(lane)) == '1'", 'false'],
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
      'tonumber(ARG_HELD) - count + pushed - tonumber(ARG_SEEN)',
      'tonumber(ARG_HELD) - count',
    ],
    ['a fifth dispatcher claims', 'not own and others >= MOST_DISPATCHERS', 'false'],
    ['missing control data are not noticed', "meta[1] ~= '1' and 'CLOSED' or", ''],
  ]),
  ...mutantsOf(`${PART}claims/evict.lua`, [
    ['who is at work is evicted', "if r.untilMs > now then return { 'HELD' } end", ''],
    ['an evicted claim counts no lapse', 'writeTries(entry, attempts, lapses + 1, due, failed)', ''],
    ['an evicted claim stays in the count', '  flightOf[slot] = flightOf[slot] - 1\n', ''],
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
  ...mutantsOf(`${PART}records/records.lua`, [
    ['a full chunk of records is lost', "    redis.call('HSET', KEYS[at], name .. '\\0' .. full, had)\n", ''],
  ]),
];

export const MUTANTS: readonly Mutant[] = [
  ...OF_PARTS,
  ...mutantsOf('src/core/routing/coverage.ts', [
    ['a block of a package covers nothing', 'packages.get(target.name)?.has(stream) === true', 'false'],
    ['a block of a stream covers nothing', 'target.name === stream :', 'false :'],
  ]),
  ...mutantsOf(COMPILE, [
    ['one SkipToNow is enough', 'blocks.every(({ spec })', 'blocks.some(({ spec })'],
    ['a declined integration is granted', ' && spec.declined !== true', ''],
    ['a revoked integration is granted', ' && spec.revoked !== true', ''],
    ['any workspace is granted', 'spec?.workspace === subscription.namespace', 'spec?.workspace !== undefined'],
    ['a duplicate is admitted', "if (taken) return 'Duplicate';", ''],
    ['a deprecated stream takes subscriptions', 'stream.spec.public !== true) return', 'false) return'],
    ['suspending pauses nothing', "live === 'Blocked' || live === 'Suspended'", "live === 'Blocked'"],
    ['a deleting stream takes events', 'open && !deleting', 'open'],
    ['a workspace that is gone is routed', "if (!open) return 'WaitingForWorkspace';", ''],
  ]),
  ...mutantsOf(PLAN, [
    ['what no object owns goes on', "route: 'closed', send: 'held', endpoint: ''", "endpoint: ''"],
    ['a queue without a stream takes events', "{ ...route, state: 'closing' }", '{ ...route }'],
    ['a queue that is made again goes on where the old one was', "['ready', 'cur', 'owner',", "['ready', 'owner',"],
    ['a pause that ends is caught up by nobody', "(next.route === 'open' && before?.route !== 'open') ||", ''],
    ['SkipToNow skips nothing', "before.onUnblock === 'skip' &&", 'false &&'],
  ]),
  ...mutantsOf('src/redis/tenant-index.ts', [
    [
      'the router does not ask paused subscriptions',
      "if (open === 'closed') continue;",
      "if (open !== 'open') continue;",
    ],
  ]),
  ...mutantsOf(APPLY, [
    ['a new leader wakes nobody', 'first ? everyUnheld(routes) : plan.opened', 'plan.opened'],
    ['a new leader leaves closed activations open', 'if (!wantedKeys.has(groupKey)) await', 'if (false) await'],
  ]),
  ...mutantsOf(script('lib/admission'), [
    ['a paused subscription is routed to', "if s[2] ~= 'open' then return 'PAUSED', meta, s end", ''],
    [
      'a queue made again routes to what was asked of the old one',
      "if s[1] ~= gen then return 'REGEN', meta, s end",
      '',
    ],
    ['missing state is open', "if meta[1] ~= '1' then return 'CLOSED', meta end", ''],
  ]),
  ...mutantsOf(script('route'), [
    ['a deposed router routes', "then return { 'FENCED' } end", "then return { 'PAUSED' } end"],
    ['a batch that is repeated is routed twice', 'if ref <= last and #redis', 'if false and #redis'],
    ['what was refused comes after all', 'elseif ref <= last then', 'elseif false then'],
    ['a key opens for what waited', '(young or (ms >= since - 2000 and ms >= accepted))', '(true)'],
    ['everything is young', 'now - ms <= 10000', 'now - ms <= 10000000'],
    ['what was skipped comes', 'ms < skipTo or', ''],
    ['a retry is early when its lane gets more', "'ZADD', KEYS[6], 'NX', unpack(due)", "'ZADD', KEYS[6], unpack(due)"],
    [
      'the tokens of a batch are not counted',
      "'HINCRBY', KEYS[7], ARGV[4], charge)\n",
      "'HINCRBY', KEYS[7], ARGV[4], 0)\n",
    ],
    ['the last ref is not kept', "'last', last, 'epoch', ARGV[2])", "'epoch', ARGV[2])"],
  ]),
  ...mutantsOf(script('lib/generation'), [
    ['what a subscription of the same name left is its own', "inc == string.match(inboxKey, '%.([^.:]+):%a+$')", 'inc'],
  ]),
  ...mutantsOf(script('next'), [
    ['a deposed router moves the cursor', "if m[2] ~= ARGV[2] then return { 'FENCED' } end", ''],
    ['a batch from elsewhere moves the cursor', "if cur ~= ARGV[6] then return { 'MOVED' } end", ''],
    [
      'a subscription that is behind falls back no further',
      "'HSETNX', KEYS[3], ARGV[at], cur",
      "'HSET', KEYS[3], ARGV[at], ARGV[7]",
    ],
    ['an inbox that did not answer is not tried again', "redis.call('SADD', KEYS[4], ARGV[at])", ''],
  ]),
  ...mutantsOf(script('catchup'), [
    ['a deposed router moves a position', "if m[2] ~= ARGV[2] then return { 'FENCED' } end", ''],
    ['a position is moved from where it is not', 'KEYS[3], ARGV[at]) == ARGV[at + 1] then', 'KEYS[3], ARGV[at]) then'],
    ['a subscription that reached the cursor stays behind', "redis.call('HDEL', KEYS[3], ARGV[at])", ''],
  ]),
  ...mutantsOf(script('lib/claiming'), [
    ['what is held is claimed', "if s[3] ~= 'open' or", 'if'],
    ['a closed key is claimed', "if not active[i] and groups[i] ~= '' then", 'if false then'],
    ['a lapse is not counted', 'lapses = lapses + 1', 'lapses = lapses'],
    ['a claim does not hold its lane', "redis.call('ZADD', KEYS[5], unpack(dues))", ''],
    ['the cap holds nobody', 'cap - redis.call', 'cap + redis.call'],
  ]),
  ...mutantsOf(script('lib/completing'), [
    [
      'what is behind is forgotten',
      'if due == true then due = headOf(KEYS[4], lane) and ARGV[1] end',
      'if due == true then due = false end',
    ],
    ['a claim that lapsed decides', "if not mine and outcome ~= 'delivered' then", 'if false then'],
    ['what was delivered late is sent again', "if not mine and outcome ~= 'delivered' then", 'if not mine then'],
    ['a failure is not counted', 'n = n + 1', 'n = n'],
    ['a retry goes before what was never tried', 'due = RETRIES + due', 'due = due'],
  ]),
  ...mutantsOf(script('act'), [
    [
      'activating again moves the time',
      "if tonumber(redis.call('HGET', KEYS[2], gk) or '') then return 'SAME' end",
      '',
    ],
    ['a deposed controller opens a gate', "if have > fence then return 'FENCED' end", ''],
  ]),
  ...mutantsOf(script('patch'), [
    ['a deposed controller writes routes', "if have > fence then return 'FENCED' end", ''],
  ]),
  ...mutantsOf(script('settle'), [
    ['a hint that was lowered meanwhile is removed', "redis.call('HGET', KEYS[2], member) ~= ARGV[i + 1]", 'false'],
  ]),
  ...mutantsOf(script('lower'), [
    ['a leased hint that is lowered keeps its token', "redis.call('HDEL', KEYS[2], member) == 1", 'false'],
  ]),
  ...mutantsOf(script('own'), [
    [
      'two routers own a queue',
      "if ends > now and ends <= now + 2 * tonumber(ARGV[3]) then return { 'HELD', m[3] } end",
      '',
    ],
    ['a clock that is set back holds a queue', ' and ends <= now + 2 * tonumber(ARGV[3])', ''],
  ]),
  ...mutantsOf(script('ingest'), [
    ['an event that is published again is stored again', 'local known = seen[hashes[i]]', 'local known = nil'],
    ['a closing queue takes events', "if meta[3] ~= 'open' then return 'CLOSED' end", ''],
    ['headers cost nothing', 'size + #ARGV[at + 2] + #ARGV[at + 1] + OVERHEAD', 'size'],
  ]),
  ...mutantsOf(script('trim'), [
    ['what an event took of the quota is not given back', 'tonumber(e[2][6] or e[2][4])', 'tonumber(e[2][4])'],
  ]),
  ...mutantsOf(script('finish'), [
    ['a skip wakes a lane that another event holds', 'if head and (mine or not held) then', 'if head then'],
  ]),
  ...mutantsOf(script('lib/health'), [
    ['an endpoint that is enabled again stays disabled', 'if enabled <= (h.disabled or h.since) then', 'if true then'],
    ['a probe that failed is repeated at once', 'h.pause = math.min(2 * h.pause, LONGEST_PAUSE_MS)', 'h.pause = 0'],
  ]),
  ...mutantsOf(script('lib/delivery'), [['a test event that failed is a dead letter', " - tonumber(s[8] or '0')", '']]),
  ...mutantsOf(script('lib/pacing'), [
    ['a limit per second paces nobody', 'math.floor((now - empty + 0.001) * perSecond / 1000)', 'perSecond'],
  ]),
  ...mutantsOf(script('enqueue'), [
    ['a part of a replay that comes again is put again', "if before then return { 'OK', before } end", ''],
  ]),
  ...mutantsOf(script('lib/lanes'), [
    [
      'a replay writes over what became of its event',
      "and (ref .. ':' .. string.sub(key, z + 1)) or ref",
      'and ref or ref',
    ],
  ]),
  ...mutantsOf('src/redis/replays.ts', [
    [
      'of a replay only the first part comes',
      'filter(field => /^c\\d+$/.test(field))',
      "filter(field => field === 'c0')",
    ],
    ['what a replay brings is given back, too', 'else refund += tokens;', 'refund += tokens;'],
  ]),
  ...mutantsOf(script('debit'), [['a replay is not held to the plan', "if m[1] ~= 'Metered' and", 'if false and']]),
  ...mutantsOf(script('reserve'), [['a batch takes more than is left', 'math.min(amount, free)', 'amount']]),
  ...mutantsOf('src/controller/kinds/account/reconcile.ts', [
    ['a top-up wakes nobody', 'changed && waiting.length > 0', 'changed && waiting.length > 99'],
  ]),
  ...mutantsOf('src/controller/routes/sync.ts', [
    ['a pause holds nothing', 'if (deps.isPaused(name)) return', 'if (name === undefined) return'],
  ]),
  ...mutantsOf(script('lead'), [
    ['the data of another installation is taken over', "if m[1] and (m[4] or '') ~= ARGV[6] then", 'if false then'],
  ]),
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
];
