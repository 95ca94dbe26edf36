import { type Mutant, mutantsOf } from './mutant.ts';

const FACADE = 'src/facade/';

/** Mutants of the code that limits and charges what an account stores, creates, and sends. */
export const LIMITS_MUTANTS: readonly Mutant[] = [
  ...mutantsOf('src/part/space/account-space.lua', [
    [
      'parts reserve half of the limit',
      'RECALL_MS, SLACK = 64, 5000, 20',
      'RECALL_MS, SLACK = 64, 5000, 2',
      'src/part/space/space.redis.test.ts',
    ],
  ]),
  ...mutantsOf(`${FACADE}resources/inbox/replays.ts`, [
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
  ...mutantsOf(`${FACADE}resources/inbox/endpoint-checks.ts`, [
    [
      'recovering any number of deliveries costs as much as a few',
      'mayGoOn: () => spend(PAGE_POINTS)',
      'mayGoOn: () => spend(0)',
      `${FACADE}prices.test.ts`,
    ],
  ]),
  ...mutantsOf('src/part/space/ingest-within.ts', [
    [
      'an unavailable account is reported as a reached limit',
      "      replaceRefused(known, 'UNAVAILABLE');\n",
      '',
      'src/part/space/space.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/part/claims/completing.lua', [
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
  ...mutantsOf('src/part/log/ingest.lua', [
    [
      'an open delivery does not use the quota',
      'local extraCost = OPEN_COST * #targets / 2 +',
      'local extraCost =',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/part/owner/recover.lua', [
    [
      'a recovered delivery does not use the quota',
      'addBytes(openCost(failed))',
      '',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/part/catchup/advance.lua', [
    [
      'an event that is routed later does not use the quota as an open one',
      '(REFERENCE_COST + OPEN_COST) * #slots',
      'REFERENCE_COST * #slots',
      'src/part/stored/open-bytes.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/core/limits/counted-limits.ts', [
    [
      'a revoked activation counts towards the limit',
      "return limit !== 'activations' || (object",
      "return limit === 'activations' || (object",
      `${FACADE}objects/limit-guard.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}objects/limit-guard.ts`, [
    [
      'any number of revoked activations can be stored',
      'Math.min(most - used, mostStored(limit, most) - stored)',
      'most - used',
      `${FACADE}objects/limit-guard.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}objects/resource-writer.ts`, [
    [
      'an activation that is opened again is not limited',
      '(present === undefined || !isInUse(limit, present))',
      'present === undefined',
      `${FACADE}objects/resource-writer.test.ts`,
    ],
  ]),
  ...mutantsOf(`${FACADE}objects/across-tenants.ts`, [
    [
      'an invalid object of the producer is reported as a fault of the partner',
      'const code = INSTEAD[error.code] ?? error.code;',
      'const code = error.code;',
      `${FACADE}objects/across-tenants.test.ts`,
    ],
  ]),
  ...mutantsOf('src/controller/kinds/integration/deliver.ts', [
    [
      'any number of wrong addresses can be tried',
      'error.unsent && !error.refused',
      'error.unsent',
      'src/controller/kinds/integration/deliver.test.ts',
    ],
  ]),
  ...mutantsOf('src/redis/scripts/mail.lua', [
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
  ...mutantsOf('src/redis/scripts/debit.lua', [
    [
      'a replay uses tokens that parts may still use',
      " - heldByOthers(KEYS[2], '')",
      '',
      'src/part/owner/replays.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/part/tokens/apply.lua', [
    [
      'a part uses tokens of its previous payer',
      'meta[2] ~= ARG_LEDGER or ',
      '',
      'src/part/tokens/tokens.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/part/inbox/permission.lua', [
    [
      'events are pulled before all activations are known',
      " or redis.call('HEXISTS', KEY_KEYS, '') == 0",
      '',
      'src/part/owner/operations.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/part/tokens/account-grant.lua', [
    [
      'a shortage of an unknown account is reported as one of its tokens',
      "(word == 'CLOSED' and '0' or ARG_NEED)",
      'ARG_NEED',
      'src/part/tokens/tokens.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/accounts/balance.ts', [
    [
      'an account has a negative balance',
      'Math.max(0, includedTokens - usedTokens)',
      'includedTokens - usedTokens',
      'src/part/tokens/tokens.redis.test.ts',
    ],
  ]),
  ...mutantsOf('src/part/log/cost.lua', [
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
