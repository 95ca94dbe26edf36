import { type Mutant, mutantsOf } from '../mutant.ts';

const PART = 'src/part/';

/** Mutants of the scripts that store and route events, and of the gate. */
export const INGEST_MUTANTS: readonly Mutant[] = [
  ...mutantsOf(`${PART}log/ingest.lua`, [
    ['a paused subscription is routed', 'and not behind[slot]', '', 'test/part/histories.redis.test.ts'],
    ['a closed subscription is routed', 'routeOf[slot] == 111 and', 'routeOf[slot] and'],
    ['new events overtake waiting events', 'waitingOf[slot] == NONE and flightOf', 'flightOf'],
    ['a push exceeds the limit of claims', ' and flightOf[slot] < limitOf[slot]', ''],
    ['claims are pushed to a removed dispatcher', 'r.untilMs > now and', ''],
    ['a duplicate is stored', "if hash ~= '' and known[hash] then", 'if false then'],
    ['a duplicate in the same batch is stored', '      known[hash] = ref\n', ''],
    [
      'a part stores more than its account has granted',
      'bytes + storedBytes + cost + extraCost > meta.space',
      'false',
      'src/part/stored/open-limit.redis.test.ts',
    ],
    [
      'a part without space is unlimited',
      "meta.storedMax and tonumber(meta.space or '0') or math.huge",
      'math.huge',
      'src/part/stored/open-limit.redis.test.ts',
    ],
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
    [
      'an event that waits for a subscription counts as not routed',
      ' and not targets.isWaitedFor',
      '',
      'test/part/histories.redis.test.ts',
    ],
    [
      'a reason of an event is counted again later',
      '    if not hold then\n      if #targets',
      '    if true then\n      if #targets',
      'src/part/reasons/reasons.redis.test.ts',
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
    [
      'the end of a body is lost',
      "    if rest ~= '' then pieces[#pieces + 1] = rest end\n",
      '',
      'src/part/log/pushing.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}lanes/lanes.lua`, [
    ['a lane waits with an outdated first event', 'if #state > NO_HEAD then setState', 'if false then setState'],
    [
      'subscriptions at their limit are always served first',
      "turns[#turns + 1] = string.format('%d', now)",
      "turns[#turns + 1] = '0'",
      'test/part/claims/fairness.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}log/sender-ids.lua`, [
    ['ids are forgotten if the clock is set back', 'and lastHour or nil', 'and nil', `${PART}log/ingest.redis.test.ts`],
    ['an id is remembered forever', 'if ref and now - msOf(ref) < DAY_MS then', 'if ref then'],
    ['an id in the format of Sluice is stored for another event', 'return #id == #NO_REF', 'return false'],
    ['an event has two ids', `if entry and string.sub(entry[2][4], 1, 4) ~= '{"i"' then`, 'if entry then'],
    ['an id that was returned is refused', 'then known[ref] = ref end', 'then known[ref] = nil end'],
  ]),
  ...mutantsOf(`${PART}catchup/cohort.lua`, [
    ['a paused subscription is advanced', 'rows[slot] and string.byte(rows[slot]) == OPEN', 'rows[slot]'],
    ['a subscription that was paused in between is advanced', 'if ref and routeOf[slot] == OPEN then', 'if ref then'],
    [
      'the subscription nearest to the tail waits for the farthest',
      'table.sort(refs)',
      'table.sort(refs, function(a, b) return a > b end)',
    ],
    ['others that are behind are forgotten', "others = after ~= '-'", 'others = false'],
    [
      'only the first subscriptions that are behind are remembered',
      "(count > REFERENCES and '' or '-')",
      "'-'",
      'test/part/many-subscriptions.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}catchup/advance.lua`, [
    ['events from before the activation are routed later', 'if list[k + 1] < ref then', 'if true then'],
    ['events from before the subscription are routed later', 'if isSince(list[k], ref) then', 'if true then'],
    [
      'a subscription is live before the tail',
      'return #entries < PAGE, references >= ENOUGH',
      'return true, references >= ENOUGH',
    ],
    ['events that are routed later are free', "put('used', string.format('%.0f', used + spent))", ''],
    ['a slice is routed twice', "if slice then put('slice', slice) else", 'if false then else'],
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
  ...mutantsOf(`${PART}lanes/failed.lua`, [
    ['a dead letter with many failures is recovered twice', "'^(%*?%d*),[^,]*', '%1'", "'^%*?%d*,[^,]*', ''"],
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
      'a subscription near the tail waits for one that is far behind',
      "    redis.call('HDEL', KEY_META, 'cohort')\n",
      '',
      `${PART}catchup/advance.redis.test.ts`,
    ],
    [
      'a subscription that is opened while others are paused is forgotten',
      ", slot .. '-') end",
      ", '-') end",
      'test/part/many-subscriptions.redis.test.ts',
    ],
    ['a dropped subscription is activated', "if redis.call('HEXISTS', KEY_SUBS, slot) == 0 then return end", ''],
    [
      'a dropped subscription stays live',
      'if row and string.byte(row) == OPEN and position == 0 then leaveLive(a) end',
      '',
      'test/part/random/random.redis.test.ts',
    ],
    [
      'a closed subscription stays live',
      'elseif was == OPEN then leaveLive(slot) end',
      'end',
      'test/part/random/random.redis.test.ts',
    ],
    [
      'live subscriptions are not counted again after a loss',
      '    live = countLive()\n',
      '',
      'src/part/reasons/reasons.redis.test.ts',
    ],
    [
      'a slice counts removed subscriptions',
      '  sliced = math.max(0, sliced - 1)\n',
      '',
      'src/part/reasons/reasons.redis.test.ts',
    ],
    [
      'skipped events are not counted',
      'if position and position < tail then redis',
      'if false then redis',
      'src/part/reasons/reasons.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}reasons/reasons.lua`, [
    ['the counts of an hour are lost', "    redis.call('HSET', KEY_REASONS, newest, said)\n", ''],
    ['hours are kept forever', "if #old > 0 then redis.call('HDEL', KEY_REASONS, unpack(old)) end", ''],
    ['an hour is lost if the clock is set back', 'tonumber(newest) < hour', 'tonumber(newest) ~= hour'],
  ]),
  ...mutantsOf(`${PART}catchup/skips.lua`, [
    [
      'a skip only counts one page',
      "redis.call('HSET', KEY_SKIPS, slot .. last, till)",
      '',
      'src/part/reasons/reasons.redis.test.ts',
    ],
    [
      'a skip counts events from before the activation',
      'if since and since < last then',
      'if since then',
      'src/part/reasons/reasons.redis.test.ts',
    ],
    [
      'a skip counts closed subscriptions',
      'if route and route ~= CLOSED then',
      'if true then',
      'src/part/reasons/reasons.redis.test.ts',
    ],
    [
      'a skip is not found among many',
      "until found[1] or cursor == '0'",
      'until true',
      'src/part/reasons/reasons.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}lanes/set-back.lua`, [
    [
      'a retry is delayed after the clock was set back',
      'if tried and tried > now and due > tried then',
      'if false then',
      'test/part/claims/clock-set-back.redis.test.ts',
    ],
  ]),
];
