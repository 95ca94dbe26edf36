import { type Mutant, mutantsWithTest } from './mutant.ts';

const HEADER_SECRETS = 'src/controller/kinds/subscription/header-secrets';
const REFLECTOR = 'src/kube/reflector.test.ts';
const TABLES = 'src/part/lanes/tables.redis.test.ts';

/** Mutants of caches: values of header Secrets, lists and watches, and slices of long calculations. */
export const CACHE_MUTANTS: readonly Mutant[] = [
  ...mutantsWithTest(`${HEADER_SECRETS}.ts`, `${HEADER_SECRETS}.test.ts`, [
    ['an older response replaces newer header values', 'if (isCurrent && had !== found?.resourceVersion) return;', ''],
    [
      'a response of the same version is not used',
      'if (isCurrent && had !== found?.resourceVersion) return;',
      'if (isCurrent) return;',
    ],
    [
      'header values of a deleted Secret are used',
      'caches.headerSecrets.store.get(secret) === undefined ? undefined : known.get(secret)?.fields',
      'known.get(secret)?.fields',
    ],
  ]),
  ...mutantsWithTest('src/kube/reflected.ts', REFLECTOR, [
    [
      'a watch continues from a list that was not completed',
      'const listed = new Set<string | undefined>();',
      'cursor = resourceVersion;\n      const listed = new Set<string | undefined>();',
    ],
    ['a list keeps deleted objects', 'if (!listed.has(key)) drop(key);', ''],
    [
      'events of an outdated server are applied',
      'if (cursor !== undefined && isOlder(resourceVersion, cursor)) return;',
      '',
    ],
  ]),
  ...mutantsWithTest('src/time/slices.ts', 'src/time/slices.test.ts', [
    [
      'a long calculation takes a single turn',
      '} while (nowMs() < untilMs);\n          return true;',
      '} while (true);',
    ],
  ]),
  ...mutantsWithTest('src/part/lanes/lanes.lua', TABLES, [
    ['many lanes are stored in a list', 'local n, isMany = #values, #values > 32', 'local n, isMany = #values, false'],
    ['the name that makes a table stays', "if isMany then redis.call('HDEL', key, LONG_NAME) end", ''],
  ]),
];
