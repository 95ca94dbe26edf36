import { type Mutant, mutantsOf } from './mutant.ts';

const PART = 'src/part/';
const COMPILE = 'src/core/routing/compile-routes.ts';
const APPLY = 'src/controller/routes/apply.ts';
const REPLICAS = 'src/redis/replicas.redis.test.ts';
const CONTROL_STORE = 'src/record/control-store.redis.test.ts';
const MAIL_RECORD = 'src/record/mail-record.redis.test.ts';
const REPLAY_SWEEP = 'src/dataplane/dispatcher/replay-sweep.redis.test.ts';
const REPLAYS = 'src/part/owner/replays.redis.test.ts';
const script = (name: string) => `src/redis/scripts/${name}.lua`;

/** Mutants of the code that compiles routes, applies them to Redis, and decides who may write. */
export const ROUTING_MUTANTS: readonly Mutant[] = [
  ...mutantsOf(`${PART}control/set-activation.ts`, [
    [
      'a change that reached some parts is not repeated',
      '    unfinished.add(pair);\n',
      '',
      'src/controller/routes/apply.redis.test.ts',
    ],
    [
      'an activation is recorded without being used for routing',
      'if (isClosing || opened || again) {',
      'if (isClosing) {',
    ],
  ]),
  ...mutantsOf(`${PART}control/part-changes.ts`, [
    ['a new subscription is live before its keys', "row: { ...wanted.row, route: 'paused' } }", 'row: wanted.row }'],
    [
      'an unwanted subscription stays in its part',
      "...drops.map(slot => ({ kind: 'drop' as const, slot })),",
      '',
      'src/controller/audit/parts.redis.test.ts',
    ],
    ['damaged activations are used for routing', "...(isDamaged ? [{ kind: 'unmark' as const }] : []),", ''],
    [
      'lanes stay parked after a crash of the controller',
      '= unparking.map(',
      '= unparking.slice(0, 0).map(',
      'src/part/control/unparking.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${PART}control/part-writer.ts`, [
    [
      'SkipToNow does not skip anything',
      "?.onUnblock === 'skip' && onUnblock === undefined",
      "?.onUnblock === 'skip' && onUnblock === 'skip'",
    ],
  ]),
  ...mutantsOf('src/core/routing/coverage.ts', [
    ['a block of a package has no effect', 'packages === undefined ? []', 'true ? []'],
    ['a block of a stream has no effect', "of(integration, 'CatalogStream', stream)", '[] as Placed<B>'],
  ]),
  ...mutantsOf('src/controller/routes/versions.ts', [
    ['routes with and without the salt have the same version', "=== undefined ? '' : '+'", "=== undefined ? '' : ''"],
  ]),
  ...mutantsOf('src/core/routing/subscription-route.ts', [
    ['a header without a value is omitted', "if (!('fault' in field)) continue;", 'if (true) continue;'],
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
    [
      'a new leader leaves closed activations open',
      'for (const groupKey of unwanted) await',
      'for (const groupKey of []) await',
    ],
  ]),
  ...mutantsOf(
    'src/redis/connection/replicas.ts',
    [
      ['fewer replicas are sufficient', 'Number(confirmed) >= replicas', 'Number(confirmed) >= 0'],
      ['a write joins a WAIT that has already started', '      master.next = undefined;\n', ''],
      ["another master's replicas confirm a write", 'if (writtenTo !== confirmedBy) {', 'if (false) {'],
      ['a write that was already executed is not confirmed', "redis.call('ping')", 'undefined'],
    ],
    REPLICAS,
  ),
  ...mutantsOf(
    'src/redis/evaluation.ts',
    [
      ['writes are not confirmed', '    await confirming.confirm(master);\n', ''],
      ['reads wait for replicas', 'onlyReads(source) || ', ''],
      ['results wait for replicas', ' || UNCONFIRMED.test(source)', ''],
    ],
    REPLICAS,
  ),
  ...mutantsOf(
    script('act'),
    [
      [
        'a repeated activation changes its time',
        "if tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or '') then return 'SAME' end",
        '',
      ],
      ['a deposed controller opens a gate', "if have > fence then return 'FENCED' end", ''],
    ],
    CONTROL_STORE,
  ),
  ...mutantsOf(
    script('mail'),
    [
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
    ],
    MAIL_RECORD,
  ),
  ...mutantsOf(
    script('patch'),
    [['a deposed controller writes routes', "if have > fence then return 'FENCED' end", '']],
    CONTROL_STORE,
  ),
  ...mutantsOf(
    'src/accounts/replays.ts',
    [
      [
        'only the first chunk of a replay is delivered',
        'filter(field => /^c\\d+$/.test(field))',
        "filter(field => field === 'c0')",
      ],
      ['the tokens of delivered replays are refunded', 'else refund += tokens;', 'refund += tokens;'],
    ],
    REPLAY_SWEEP,
  ),
  ...mutantsOf(
    script('debit'),
    [['a replay is not limited by the plan', "if m[1] ~= 'Metered' and", 'if false and']],
    REPLAYS,
  ),
  ...mutantsOf('src/controller/routes/sync.ts', [
    [
      'a pause does not hold anything',
      'const isPaused = () => deps.isPaused(name);',
      'const isPaused = () => name === undefined;',
    ],
  ]),
  ...mutantsOf(
    script('lead'),
    [
      [
        'the data of another installation is taken over',
        "if (m[1] or m[3]) and (m[4] or '') ~= ARGV[6] then",
        'if false then',
      ],
      ['each term changes the name of the Redis', "'HSETNX', KEYS[1], 'store'", "'HSET', KEYS[1], 'store'"],
    ],
    CONTROL_STORE,
  ),
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
      'src/controller/engine/turns.test.ts',
    ],
    ['deletions come last', "['deletion', 'change', 'background']", "['change', 'background', 'deletion']"],
  ]),
];
