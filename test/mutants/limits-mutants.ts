import type { Mutant } from './mutants.ts';

const FACADE = 'src/facade/';
const INGRESS = 'src/dataplane/ingress/';

type Change = readonly [name: string, from: string, to: string, test: string];

/** The mutants of a file, and the test that detects each of them. */
function limitsMutantsOf(file: string, changes: readonly Change[]): Mutant[] {
  return changes.map(([name, from, to, test]) => ({ name, file, from, to, test }));
}

/** Mutants of the code that protects tenants from each other: limits, prices, and shares. */
export const LIMITS_MUTANTS: readonly Mutant[] = [
  ...limitsMutantsOf(`${INGRESS}sender-limits.ts`, [
    [
      'the size of an event is free',
      'Math.max(1, Math.ceil(bytes / POINT_BYTES))',
      'Math.max(1, bytes * 0)',
      `${INGRESS}sender-limits.test.ts`,
    ],
  ]),
  ...limitsMutantsOf(`${INGRESS}admission.ts`, [
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
  ...limitsMutantsOf(`${INGRESS}memory/memory-shares.ts`, [
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
  ...limitsMutantsOf('src/time/shares.ts', [
    [
      'a workspace takes all claims of a dispatcher',
      '(free - heldBy(holder)) / 2',
      'free',
      'src/dataplane/parts/room.test.ts',
    ],
    ['a holder takes the whole share', '(free - heldBy(holder)) / 2', 'free', 'src/time/shares.test.ts'],
  ]),
  ...limitsMutantsOf('src/dataplane/parts/room.ts', [
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
  ...limitsMutantsOf('src/dataplane/parts/exchange-loop.ts', [
    [
      'an exchange ignores the room',
      'isStopping ? 0 : room.limit(holds, want)',
      'isStopping ? 0 : 4_608',
      'src/dataplane/parts/shared-trouble.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/part/space/account-space.lua', [
    [
      'parts reserve half of the limit',
      'RECALL_MS, SLACK = 64, 5000, 20',
      'RECALL_MS, SLACK = 64, 5000, 2',
      'src/part/space/space.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf(`${FACADE}resources/inbox/replays.ts`, [
    ['searching a range is free', 'points: RANGE_POINTS,', 'points: 0,', `${FACADE}prices.test.ts`],
    [
      'only the price of a range costs points',
      '    charge({ points: RANGE_POINTS',
      '    if (dryRun === true) charge({ points: RANGE_POINTS',
      `${FACADE}prices.test.ts`,
    ],
    [
      'replaying a range costs as much as reading',
      "  idempotency: 'replay',\n  cost: 10,\n",
      "  idempotency: 'replay',\n",
      `${FACADE}prices.test.ts`,
    ],
  ]),
  ...limitsMutantsOf(`${FACADE}resources/inbox/endpoint-checks.ts`, [
    [
      'recovering any number of deliveries costs as much as a few',
      'mayGoOn: () => spend(PAGE_POINTS)',
      'mayGoOn: () => spend(0)',
      `${FACADE}prices.test.ts`,
    ],
  ]),
  ...limitsMutantsOf('src/part/space/ingest-within.ts', [
    [
      'an unavailable account is reported as a reached limit',
      "      replaceRefused(known, 'UNAVAILABLE');\n",
      '',
      'src/part/space/space.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf(`${FACADE}contract/rate-limit.ts`, [
    [
      'all points of a minute can be used at once',
      'Math.max(BURST_SECONDS, Math.ceil((60 * BURST_POINTS) / perMinute))',
      'Math.max(BURST_SECONDS, 60)',
      `${FACADE}contract/rate-limit.test.ts`,
    ],
  ]),
  ...limitsMutantsOf(`${FACADE}contract/address-limit.ts`, [
    [
      'an address has any number of calls in progress',
      "if (!calls.enter(address)) return refuse(response, 'concurrency', full, 1);",
      'calls.enter(address);',
      `${FACADE}contract/rate-limit.test.ts`,
    ],
  ]),
  ...limitsMutantsOf('src/http/connection-limit.ts', [
    [
      'an address has any number of connections',
      'if (address !== undefined && !ofAddresses.enter(address)) {',
      'if (address !== undefined && ofAddresses.enter(address) === undefined) {',
      `${FACADE}contract/rate-limit.test.ts`,
    ],
    [
      'the connections of a proxy count for an address',
      'const address = connectionOf?.(socket);',
      "const address = connectionOf?.(socket) ?? '';",
      `${FACADE}contract/rate-limit.test.ts`,
    ],
    [
      'a server has any number of connections',
      'places.size >= total',
      'places.size < 0',
      'src/http/connection-limit.test.ts',
    ],
    [
      'a request in progress is closed for a new connection',
      'if (isProcessed(place)) continue;\n',
      '',
      'src/http/connection-limit.test.ts',
    ],
    [
      'a request with a slow client is never closed',
      'isAwaited ||= response.req.complete && !response.writableEnded;',
      'isAwaited ||= !response.writableEnded;',
      'src/http/connection-limit.test.ts',
    ],
    [
      'the oldest connection is closed even if it was used recently',
      'if (places.delete(place.socket)) places.set(place.socket, place);',
      'if (!places.has(place.socket)) return;',
      'src/http/connection-limit.test.ts',
    ],
    [
      'the use of a TLS connection is not recorded',
      "socket['_parent'] ?? socket",
      'socket',
      'src/dataplane/ingress/pressure.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/http/arrivals.ts', [
    [
      'a call starts before connections that have arrived',
      'accepted === seen || nowMs() >= untilMs',
      'true',
      'src/http/arrivals.test.ts',
    ],
    ['connections delay calls without a limit', ' || nowMs() >= untilMs', '', 'src/http/arrivals.test.ts'],
  ]),
  ...limitsMutantsOf(`${FACADE}contract/paced-refusals.ts`, [
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
  ...limitsMutantsOf(`${FACADE}contract/pipelines.ts`, [
    [
      'any number of requests of a connection can wait',
      'if (count >= MOST_PIPELINED) return void socket.destroy();',
      '',
      `${FACADE}contract/pipelines.test.ts`,
    ],
    [
      'requests of a connection start at the same time',
      'if (response.socket !== null) return start();',
      'if (response !== null) return start();',
      `${FACADE}contract/pipelines.test.ts`,
    ],
    [
      'requests that have started still count as waiting',
      '(waiting.get(socket) ?? 1) - 1',
      'waiting.get(socket) ?? 1',
      `${FACADE}contract/pipelines.test.ts`,
    ],
    [
      'a connection is closed one request too early',
      'count >= MOST_PIPELINED',
      'count + 1 >= MOST_PIPELINED',
      `${FACADE}contract/pipelines.test.ts`,
    ],
  ]),
  ...limitsMutantsOf('src/http/protocol-errors.ts', [
    [
      'an invalid request is refused before the responses to earlier requests',
      'if (owesEarlier) {',
      'if (owesEarlier && false) {',
      'src/http/pipelining.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/http/closed-connections.ts', [
    [
      'each closed connection is logged',
      'if (nowMs() < quietUntilMs) return;',
      '',
      'src/http/closed-connections.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/part/claims/completing.lua', [
    [
      'failed attempts are stored for free',
      'addBytes(openCost(longer) - before)',
      '',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
    [
      'a replay returns bytes that it has not used',
      'local counts = not isTesting and name == ref',
      'local counts = not isTesting',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
    [
      'failed attempts are removed although there is room',
      ' and not hasRoomFor(openCost(longer) - before)',
      '',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/part/log/ingest.lua', [
    [
      'an open delivery does not use the quota',
      'local extraCost = OPEN_COST * #targets / 2 +',
      'local extraCost =',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/part/owner/recover.lua', [
    [
      'a recovered delivery does not use the quota',
      'addBytes(openCost(failed))',
      '',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/part/catchup/advance.lua', [
    [
      'an event that is routed later does not use the quota as an open one',
      '(REFERENCE_COST + OPEN_COST) * #slots',
      'REFERENCE_COST * #slots',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf(`${FACADE}contract/long-poll.ts`, [
    [
      'the reads of a waiting call are free',
      'if (mayLook()) answer = await ask();',
      'answer = await ask();',
      `${FACADE}contract/waiting-calls.test.ts`,
    ],
  ]),
  ...limitsMutantsOf(`${FACADE}auth/verified-tokens.ts`, [
    [
      'a verified token is valid after its keys were replaced',
      'known?.keys === keys ? known.identity : undefined',
      'known?.identity',
      `${FACADE}auth/verified-tokens.test.ts`,
    ],
  ]),
  ...limitsMutantsOf('src/time/time-shares.ts', [
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
  ...limitsMutantsOf(`${FACADE}objects/redis-shares.ts`, [
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
  ...limitsMutantsOf('src/dataplane/due-loop.ts', [
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
  ...limitsMutantsOf('src/redis/shared-client.ts', [
    ['the duration of scripts is not measured', 'micros = timed.micros;', '', 'src/redis/shared-client.redis.test.ts'],
  ]),
  ...limitsMutantsOf('src/core/limits/counted-limits.ts', [
    [
      'a revoked activation counts towards the limit',
      "return limit !== 'activations' || (object",
      "return limit === 'activations' || (object",
      `${FACADE}objects/limit-guard.test.ts`,
    ],
  ]),
  ...limitsMutantsOf(`${FACADE}objects/limit-guard.ts`, [
    [
      'any number of revoked activations can be stored',
      'Math.min(most - used, mostStored(limit, most) - stored)',
      'most - used',
      `${FACADE}objects/limit-guard.test.ts`,
    ],
  ]),
  ...limitsMutantsOf(`${FACADE}objects/resource-writer.ts`, [
    [
      'an activation that is opened again is not limited',
      '(present === undefined || !isInUse(limit, present))',
      'present === undefined',
      `${FACADE}objects/resource-writer.test.ts`,
    ],
  ]),
  ...limitsMutantsOf(`${FACADE}objects/across-tenants.ts`, [
    [
      'an invalid object of the producer is reported as a fault of the partner',
      'const code = INSTEAD[error.code] ?? error.code;',
      'const code = error.code;',
      `${FACADE}objects/across-tenants.test.ts`,
    ],
  ]),
  ...limitsMutantsOf('src/controller/kinds/integration/deliver.ts', [
    [
      'any number of wrong addresses can be tried',
      'error.unsent && !error.refused',
      'error.unsent',
      'src/controller/kinds/integration/deliver.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/redis/scripts/mail.lua', [
    [
      'an Integration returns the email of another one to the limit',
      "if redis.call('HGET', KEYS[3], address) == uid then",
      'if true then',
      'src/record/mail-record.redis.test.ts',
    ],
    [
      'an attempt returns an email to the limit that an earlier attempt may have sent',
      "sent and uid .. '+' or uid",
      'uid',
      'src/record/mail-record.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/redis/scripts/debit.lua', [
    [
      'a replay uses tokens that parts may still use',
      " - heldByOthers(KEYS[2], '')",
      '',
      'src/part/owner/replays.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/part/tokens/apply.lua', [
    [
      'a part uses tokens of its previous payer',
      'meta[2] ~= ARG_LEDGER or ',
      '',
      'src/part/tokens/tokens.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/part/inbox/permission.lua', [
    [
      'events are pulled before all activations are known',
      " or redis.call('HEXISTS', KEY_KEYS, '') == 0",
      '',
      'src/part/owner/operations.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/part/tokens/account-grant.lua', [
    [
      'a shortage of an unknown account is reported as one of its tokens',
      "(word == 'CLOSED' and '0' or ARG_NEED)",
      'ARG_NEED',
      'src/part/tokens/tokens.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/accounts/balance.ts', [
    [
      'an account has a negative balance',
      'Math.max(0, includedTokens - usedTokens)',
      'includedTokens - usedTokens',
      'src/part/tokens/tokens.redis.test.ts',
    ],
  ]),
  ...limitsMutantsOf('src/part/log/cost.lua', [
    [
      'a body that fills a block of memory is charged for two',
      'body + 6',
      'body + 10',
      'src/part/log/ingest.redis.test.ts',
    ],
    [
      'a body is charged for less than its block of memory',
      'math.ceil(needed / block) * block',
      'needed',
      'src/part/log/ingest.redis.test.ts',
    ],
  ]),
];
