import { type Mutant, mutantsOf } from '../mutant.ts';

const PART = 'src/part/';

/** Mutants of the scripts that count tokens, space, and calls, and remove what has ended. */
export const LEDGER_MUTANTS: readonly Mutant[] = [
  ...mutantsOf('src/idempotency/begin-call.lua', [
    ['a key is used for two requests', "if known[1] ~= ARG_REQUEST then return { 'CONFLICT' } end", ''],
    ['a call is performed twice', "if known[4] then return { 'DONE', known[4] } end", ''],
    ['a call is performed twice concurrently', "if left > 0 then return { 'BUSY', left } end", ''],
    ['an interrupted call starts with a new seed', "return { 'RUN', known[2] }", "return { 'RUN', ARG_SEED }"],
    ['an owner can store any number of calls', '>= most then', '>= 2 ^ 52 then'],
    ['an account can store any number of calls', '{ KEY_OF_ACCOUNT, ARG_MOST_OF_ACCOUNT }', 'nil'],
  ]),
  ...mutantsOf('src/idempotency/end-call.lua', [
    [
      'a refused repetition frees the key of an interrupted call',
      " and redis.call('HEXISTS', KEY_CALL, 'repeated') == 0",
      '',
    ],
    [
      'a replica that lost its turn ends the call',
      "if redis.call('HGET', KEY_CALL, 'turn') ~= ARG_TURN then return 'LOST' end",
      '',
    ],
  ]),
  ...mutantsOf(`${PART}tokens/account-grant.lua`, [
    [
      'an old report reclaims tokens',
      'if total > had then',
      'if total ~= had then',
      'src/part/tokens/ledger-faults.redis.test.ts',
    ],
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
    [
      'returned tokens can be spent',
      "  redis.call('HSET', KEY_META, 'granted', meta[3] or '0')\n",
      '',
      'src/part/tokens/silent-holder.redis.test.ts',
    ],
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
    [
      'an account counts a part that has another account',
      ' or meta[4] ~= ARG_ACCOUNT',
      '',
      `${PART}space/space.redis.test.ts`,
    ],
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
  ...mutantsOf(`${PART}sweep/sweep.ts`, [
    ['a wrong clock of Redis expires events', 'if (Math.abs(offsetMs) > LARGEST_OFFSET_MS)', 'if (false)'],
  ]),
  ...mutantsOf(`${PART}sweep/expire.lua`, [
    [
      'events that expire before they are routed are not counted',
      "if cursor ~= '-' and cursor ~= '=' then lost, cursor = movePositions(last, cursor) end",
      "if cursor ~= '=' then cursor = '-' end",
    ],
    ['a claimed event does not expire', 'if waits[i] or claimed then', 'if waits[i] then'],
    [
      'results of delivered events are kept',
      '\n  forgetRecords(last, ref, number)\n',
      '\n',
      'test/part/random/random.redis.test.ts',
    ],
    ['results of delivered replays are kept', 'forgetDelivered(recordsOf(refs[replayedFrom[k]]), names)', ''],
    ['expired events still use the quota', 'addBytes(-bytes)', ''],
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
  ...mutantsOf(`${PART}sweep/forget-ids.lua`, [
    ['removed ids still use the quota', 'addBytes(-ID_COST * ids)', '', 'test/part/random/random.redis.test.ts'],
  ]),
  ...mutantsOf(`${PART}sweep/forget-records.lua`, [
    ['removed failed deliveries still use the quota', 'addBytes(-bytes)', ''],
    [
      'names are kept longer than their records',
      "if bytes > 0 then redis.call('HDEL', KEY_META, 'tidied') end",
      '',
      'src/part/stored/kept-bytes.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}sweep/forget-slot.lua`, [
    ['open deliveries of a deleted subscription still use the quota', 'addBytes(-openCost(failed))', ''],
    [
      'the events of a recreated subscription are removed',
      "if redis.call('HEXISTS', KEY_SUBS, slot) == 1 then",
      'if false then',
    ],
  ]),
];
