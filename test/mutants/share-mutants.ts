import { type Mutant, mutantsOf } from './mutant.ts';

const FACADE = 'src/facade/';
const INGRESS = 'src/dataplane/ingress/';

/** Mutants of the code that shares processes between tenants: rates, turns, connections, and memory. */
export const SHARE_MUTANTS: readonly Mutant[] = [
  ...mutantsOf(`${INGRESS}sender-limits.ts`, [
    [
      'the size of an event is free',
      'Math.max(1, Math.ceil(bytes / POINT_BYTES))',
      'Math.max(1, bytes * 0)',
      `${INGRESS}sender-limits.test.ts`,
    ],
  ]),
  ...mutantsOf(`${INGRESS}admission.ts`, [
    [
      'a body without a specified size costs one point',
      "request.headers['content-length'] === undefined ? pointsOf(bytes) : 1",
      "request.headers['content-length'] === '' ? pointsOf(bytes) : 1",
      `${INGRESS}sender-limits.test.ts`,
    ],
    [
      'a body that is too large costs as much as a stored one',
      'bytes > limits.bodyBytes ? 1 : pointsOf(bytes)',
      'pointsOf(bytes)',
      `${INGRESS}sender-limits.test.ts`,
    ],
  ]),
  ...mutantsOf(`${INGRESS}request-body.ts`, [
    [
      'a body begins to arrive without room for its end',
      'holding.take(taken)',
      'holding.take(0)',
      `${INGRESS}request-body.test.ts`,
    ],
  ]),
  ...mutantsOf('src/kube/namespace-watch.ts', [
    [
      'a new leader lists all namespaces at once',
      'const LISTS_AT_ONCE = 12',
      'const LISTS_AT_ONCE = 10_000',
      'src/kube/namespaced-views.test.ts',
    ],
  ]),
  ...mutantsOf(`${INGRESS}memory/memory-shares.ts`, [
    [
      'an account within its share is refused',
      'storedBytes > shareBytes && storedBytes >= refusedBytes',
      'storedBytes >= refusedBytes',
      `${INGRESS}memory/memory-shares.test.ts`,
    ],
    [
      'an account can use all of the memory',
      'forEvents / Math.max(1, accounts.size)',
      'forEvents',
      `${INGRESS}memory/memory-shares.test.ts`,
    ],
    [
      'accounts have no guaranteed memory',
      'Math.max(guaranteedBytes, forEvents',
      'Math.max(1, forEvents',
      `${INGRESS}memory/memory-shares.test.ts`,
    ],
    [
      'all accounts above their share are refused at the same time',
      ' * largest ** (1 - pressure)',
      '',
      `${INGRESS}memory/memory-shares.test.ts`,
    ],
    [
      'memory that is used for other data is shared',
      'to * maxBytes - Math.max(0, usedBytes - sum)',
      'to * maxBytes',
      `${INGRESS}memory/memory-shares.test.ts`,
    ],
    [
      'each workspace of an account has a separate share',
      "payer === '' ? tenant : payer",
      'tenant',
      `${INGRESS}memory/memory-shares.test.ts`,
    ],
  ]),
  ...mutantsOf('src/time/shares.ts', [
    [
      'a workspace takes all claims of a dispatcher',
      '(free - heldBy(holder)) / 2',
      'free',
      'src/dataplane/parts/room.test.ts',
    ],
    ['a holder takes the whole share', '(free - heldBy(holder)) / 2', 'free', 'src/time/shares.test.ts'],
  ]),
  ...mutantsOf('src/dataplane/parts/room.ts', [
    [
      'a part takes all claims of its workspace',
      '(PART_RATIO * shares.freeFor(tenant) - held) / (PART_RATIO + 1)',
      'shares.freeFor(tenant)',
      'src/dataplane/parts/room.test.ts',
    ],
    [
      'a workspace without claims waits for others',
      'Math.max(least - shares.heldBy(tenant), Math.floor(ofPart))',
      'Math.floor(ofPart)',
      'src/dataplane/parts/room.test.ts',
    ],
    [
      'the parts of a workspace are offered more than it has',
      'Math.max(Math.ceil(most / (parts.get(tenant) ?? 1)), held, least)',
      'Math.max(most, held, least)',
      'src/dataplane/parts/room.test.ts',
    ],
  ]),
  ...mutantsOf('src/dataplane/parts/exchange-loop.ts', [
    [
      'an exchange ignores the room',
      'isStopping ? 0 : room.limit(holds, want)',
      'isStopping ? 0 : 4_608',
      'src/dataplane/parts/shared-trouble.redis.test.ts',
    ],
    [
      'a part does not use the room that others have left during its exchange',
      'isStopping || takenOrUnread < limit - holds + written ? want : undefined',
      'want',
      'src/dataplane/parts/exchange-loop.test.ts',
    ],
  ]),
  ...mutantsOf(`${FACADE}contract/rate-limit.ts`, [
    [
      'all points of a minute can be used at once',
      'Math.max(BURST_SECONDS, Math.ceil((60 * BURST_POINTS) / perMinute))',
      'Math.max(BURST_SECONDS, 60)',
      `${FACADE}contract/rate-limit.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}contract/address-limit.ts`, [
    [
      'an address has any number of calls in progress',
      "if (!calls.enter(address)) return refuse(response, 'concurrency', full, 1);",
      'calls.enter(address);',
      `${FACADE}contract/rate-limit.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}contract/paced-refusals.ts`, [
    ['calls are refused at any rate', 'holdMs: everyMs', 'holdMs: 0', `${FACADE}contract/paced-refusals.test.ts`],
    [
      'any number of refused calls can wait',
      'if (waiting >= MOST_REFUSED) return void response.req.socket.destroy();',
      '',
      `${FACADE}contract/paced-refusals.test.ts`,
    ],
    [
      'a client that has left delays the next one',
      "else if (typeof leave === 'function') leave();",
      '',
      `${FACADE}contract/paced-refusals.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}contract/long-poll.ts`, [
    [
      'the reads of a waiting call are free',
      'if (mayLook()) answer = await ask();',
      'answer = await ask();',
      `${FACADE}contract/waiting-calls.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}auth/verified-tokens.ts`, [
    [
      'a verified token is valid after its keys were replaced',
      'known?.keys === keys ? known.identity : undefined',
      'known?.identity',
      `${FACADE}auth/verified-tokens.test.ts`,
    ],
  ]),
  ...mutantsOf('src/time/time-shares.ts', [
    [
      'a share is not limited',
      'Math.max(nowMs, use.untilMs) + expectedMs / share',
      'nowMs',
      'src/time/time-shares.test.ts',
    ],
    [
      'time beyond the expected duration is free',
      'use.untilMs += (ms - expectedMs) / share;',
      '',
      'src/time/time-shares.test.ts',
    ],
    [
      'a short call hides long calls of the same kind',
      'Math.max(ms, (use.expected.get(kind) ?? 0) * KEEP)',
      'ms',
      'src/time/time-shares.test.ts',
    ],
  ]),
  ...mutantsOf(`${FACADE}objects/redis-shares.ts`, [
    [
      'one account can use all of the time of Redis',
      'const SHARE = 0.1;',
      'const SHARE = 1;',
      'src/roles/redis-shares.redis.test.ts',
    ],
    [
      'all accounts share their time',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the text of the source.
      '`${master} ${account}`',
      'master',
      'src/roles/redis-shares.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/dataplane/due-loop.ts', [
    [
      'a partition that does not respond takes places again',
      'let own = silent[p] ? 0 : most;',
      'let own = most;',
      'src/dataplane/due-loop-silence.test.ts',
    ],
    [
      'more work is started than there are places',
      'if (stopped || !hasPlace) await',
      'if (stopped) await',
      'src/dataplane/due-loop-silence.test.ts',
    ],
  ]),
  ...mutantsOf('src/redis/shared-client.ts', [
    ['the duration of scripts is not measured', 'micros = timed.micros;', '', 'src/redis/shared-client.redis.test.ts'],
  ]),
];
