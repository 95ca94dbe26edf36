import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { openEndpoint } from '../../../src/core/delivery/endpoint-config.ts';
import { deriveSealKeys, type SealKeys } from '../../../src/core/delivery/seal.ts';
import { connectRedis } from '../../../src/redis/client.ts';
import { CLUSTER_KEYS } from '../../../src/redis/keys.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { dumpRedis, type RedisDump } from '../../model/state/redis-dump.ts';
import type { Sluice } from '../../support/sluice.ts';

type Hash = Readonly<Record<string, string>>;

const pick = (hash: Hash, fields: readonly string[]) => fields.map(field => `${field}=${hash[field] ?? ''}`);

const QUEUE = ['ready', 'state', 'retentionMs', 'maxBytes', 'source', 'eventTypes', 'contextHeaders'];
const SUBSCRIPTION = ['tenant', 'queue', 'route', 'send', 'onUnblock', 'cap', 'unordered'];

/**
 * Returns the lines for a key, based on the format of its name. Generations are derived from the object uid, and are
 * omitted together with all times, owners, and positions.
 */
const TOLD: readonly (readonly [key: RegExp, tell: (hash: Hash, sub: string, keys: SealKeys) => readonly string[]])[] =
  [
    [/^\{t:[^}]*\}:meta$/, hash => pick(hash, ['ready', 'payer', 'plan'])],
    [/^\{t:[^}]*\}:keys$/, hash => Object.entries(hash).map(([sha256, expires]) => `${sha256} ${expires}`)],
    [/^\{t:[^}]*\}:index$/, hash => Object.keys(hash)],
    [/^\{t:[^}]*\}:subs:/, hash => Object.entries(hash).map(([to, sub]) => `${to} ${sub.replace(/\..*$/, '')}`)],
    [/^\{q:[^:}]*:[^:}]*\}:meta$/, hash => pick(hash, QUEUE)],
    [/^\{i:[^}]*\}:meta$/, hash => pick(hash, ['ready', 'state'])],
    [/^\{i:[^}]*\}:act$/, hash => Object.keys(hash)],
    [/^\{i:[^}]*\}:s:[^:]*$/, (hash, sub, keys) => [...pick(hash, SUBSCRIPTION), ...tellEndpoint(hash, sub, keys)]],
    [/^\{a:[^}]*\}:meta$/, hash => pick(hash, ['plan', 'included'])],
  ];

/**
 * Returns the sealed content without the salt of the secret, and without the time at which the secret became the newest
 * one.
 */
function tellEndpoint({ endpoint = '' }: Hash, sub: string, keys: SealKeys): string[] {
  if (endpoint === '') return [];
  const { salt: _salt, rotatedAtMs: _rotatedAtMs, ...config } = openEndpoint(keys, sub, endpoint);
  return Object.entries(config).map(([field, value]) => `endpoint.${field}=${JSON.stringify(value)}`);
}

/** Returns whether an entry is closed and has no object. A new installation would not contain it. */
const isForgotten = (hash: Hash) => hash['route'] === 'closed' && hash['send'] === 'held';

function forgotten({ hashes }: RedisDump): ReadonlySet<string> {
  const subscriptions = [...hashes].filter(([, hash]) => isForgotten(hash)).map(([key]) => key);
  return new Set(subscriptions.map(key => key.replace(/^\{i:([^}]*)\}:s:(.*)$/, 's:$1:$2')));
}

/**
 * Returns the control state in canonical lines: `key: content`. The order does not depend on the steps that led to this
 * state.
 */
export function controlLines(dump: RedisDump, keys: SealKeys): string[] {
  const gone = forgotten(dump);
  const lines = [...dump.hashes].flatMap(([key, hash]) => {
    const tell = TOLD.find(([name]) => name.test(key))?.[1];
    if (tell === undefined || isForgotten(hash)) return [];
    return tell(hash, key.replace(/^.*:/, ''), keys).flatMap(line => (gone.has(line) ? [] : [`${key}: ${line}`]));
  });
  const tenants = (dump.sets.get(CLUSTER_KEYS.tenants) ?? []).map(tenant => `${CLUSTER_KEYS.tenants}: ${tenant}`);
  return [...lines, ...tenants].toSorted();
}

/**
 * Reads the control state of a whole Redis server (no Cluster).
 * @param process any process of this test run because all of them have the same root key
 */
export async function readControlLines(url: string, process: Sluice): Promise<string[]> {
  const keys = deriveSealKeys(await readFile(join(dirname(process.log), 'root.key')));
  const redis = await connectRedis(url, createLogger({ level: 'silent' }));
  try {
    return controlLines(await dumpRedis(redis), keys);
  } finally {
    await redis.close();
  }
}

/**
 * Returns the differences between two control states: `-` for lines of the first state, and `+` for lines of the second
 * state. Empty if they are equal.
 */
export function controlDiff(first: readonly string[], second: readonly string[]): string {
  const only = (a: readonly string[], b: readonly string[], sign: string) =>
    a.filter(line => !b.includes(line)).map(line => `${sign} ${line}`);
  return [...only(first, second, '-'), ...only(second, first, '+')]
    .toSorted((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1))
    .join('\n');
}
