import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createKeyRing } from '../core/delivery/key-ring.ts';
import { countKeyUses } from './root-key-metrics.ts';
import { chooseRootKey, createRootKeyChoice } from './root-keys.ts';

const fileOf = (n: number) => ({ name: n === 1 ? 'root.key' : `root.key.${n}`, secret: new Uint8Array(32).fill(n) });
const ids = createKeyRing([1, 2, 3].map(fileOf))
  .all()
  .map(({ id }) => id) as [string, string, string];

/** A leader that signs with `root.key`, and replicas with the given keys. */
function start(files: readonly number[], replicas: Record<string, readonly string[]>) {
  const keys = createKeyRing(files.map(fileOf));
  keys.follow(keys.oldest().fingerprint);
  const state = { replicas, published: [] as string[], enqueued: 0, fails: false, ms: 0 };
  const nameOf = (fingerprint: string) => keys.all().find(key => key.fingerprint === fingerprint)?.name ?? '';
  const choice = createRootKeyChoice({
    keys,
    replica: 'one',
    readRootKeyReports: async () => new Map(Object.entries(state.replicas)),
    control: {
      publishRootKey: async (fence, fingerprint) => {
        if (state.fails) throw new Error('fenced');
        state.published.push(`${fence} ${nameOf(fingerprint)} while ${keys.first().name} signs`);
      },
    },
    fence: () => 7,
    enqueueAll: () => state.enqueued++,
    clock: { setTimer: () => () => {}, nowMs: () => state.ms },
    log: { info: () => {}, debug: () => {}, warn: () => {}, error: () => {} },
  });
  choice.begin(AbortSignal.abort(), keys.state());
  state.ms = 35_000;
  return { keys, state, choice };
}

test.each([
  ['without its own report, as after the loss of all reports', { two: [...ids] }],
  ['without any report', {}],
])('a key waits %s, and then for another 35 seconds', async (_which, replicas) => {
  const { keys, state, choice } = start([1, 2], replicas);
  await choice.check();
  expect([keys.first().name, choice.waitingFor()]).toEqual(['root.key', 1]);
  state.replicas = { one: [...ids] };
  state.ms += 34_999;
  await choice.check();
  expect(keys.first().name).toBe('root.key');
  state.ms += 1;
  await choice.check();
  expect(keys.first().name).toBe('root.key.2');
});

test('a new leader waits for 35 seconds, during which all replicas report', async () => {
  const { keys, state, choice } = start([1, 2], { one: [...ids] });
  state.ms = 34_999;
  await choice.check();
  expect(keys.first().name).toBe('root.key');
  state.ms = 35_000;
  await choice.check();
  expect(keys.first().name).toBe('root.key.2');
});

test('a new key waits for every replica, is published, and is then used for all tenants', async () => {
  const { keys, state, choice } = start([1, 2], { one: [ids[0]], two: [ids[0], ids[1]] });
  await choice.check();
  expect([keys.first().name, choice.waitingFor(), state.published, state.enqueued]).toEqual(['root.key', 1, [], 0]);
  state.replicas = { one: [ids[0], ids[1]], two: [ids[0], ids[1]] };
  await choice.check();
  expect([keys.first().name, choice.waitingFor()]).toEqual(['root.key.2', 0]);
  expect(state.published[0]).toBe('7 root.key.2 while root.key signs');
  expect(state.enqueued).toBe(1);
  const { length } = state.published;
  await choice.check();
  expect([state.published.length, state.enqueued]).toEqual([length, 1]);
});

test('a key that cannot be published is not used', async () => {
  const { keys, state, choice } = start([1, 2], { one: [...ids] });
  state.fails = true;
  await expect(choice.check()).rejects.toThrow('fenced');
  expect([keys.first().name, state.enqueued]).toEqual(['root.key', 0]);
});

test('while the keys cannot be checked, this is logged about once a minute', async () => {
  const clock = createManualClock();
  const keys = createKeyRing([1, 2].map(fileOf));
  keys.follow(keys.oldest().fingerprint);
  let lines = 0;
  let checks = 0;
  const choice = createRootKeyChoice({
    keys,
    replica: 'one',
    readRootKeyReports: async () => {
      checks++;
      throw new Error('Connection is closed.');
    },
    control: { publishRootKey: async () => {} },
    fence: () => 7,
    enqueueAll: () => {},
    clock,
    log: { info: () => {}, debug: () => {}, warn: () => void lines++, error: () => {} },
  });
  const over = new AbortController();
  choice.begin(over.signal, keys.state());
  await clock.advance(59_500);
  over.abort();
  expect([checks, lines]).toEqual([60, 1]);
});

test('the newest key that all replicas have is selected, and never an older one than before', () => {
  const keys = createKeyRing([1, 2, 3].map(fileOf));
  const choose = (...reports: string[][]) => chooseRootKey(keys, new Map(Object.entries(reports)), '0')?.name;
  keys.follow(keys.oldest().fingerprint);
  expect(choose([...ids], [ids[0], ids[1]])).toBe('root.key.2');
  expect(choose([...ids], [ids[0]])).toBeUndefined();
  expect(choose([...ids])).toBe('root.key.3');
  expect(choose()).toBeUndefined();
  keys.follow(keys.newest().fingerprint);
  expect(choose([ids[0], ids[1]])).toBeUndefined();
});

test('if the first key is removed, its replacement is published', async () => {
  const { keys, state, choice } = start([1, 2], { one: [ids[0], ids[1]] });
  await choice.check();
  keys.replace([fileOf(1)]);
  await choice.check();
  expect(state.published.at(-1)).toBe('7 root.key while root.key signs');
  expect(state.enqueued).toBe(2);
});

test('uses are counted by key: secrets in use, and header values', () => {
  const keys = createKeyRing([1, 2].map(fileOf));
  const sealed = (id: string) => ({ name: 'x-a', valueSealed: `s2.${id}.AAAA` });
  const endpoint = (...headers: { name: string; valueSealed: string }[]) => ({ url: 'https://a.example', headers });
  const signing = { salt: 'a', version: 1, rotatedAt: '2026-01-01T00:00:00Z' };
  const rotated = { ...signing, version: 2, key: ids[1] };
  const nowMs = Date.parse('2026-01-01T12:00:00Z');
  const countAt = (ms: number) =>
    Object.fromEntries(
      countKeyUses(
        [
          { spec: {}, status: { signing } },
          { spec: { endpoint: endpoint() } },
          { spec: { endpoint: endpoint(sealed(ids[0]), sealed(ids[1])) }, status: { signing } },
          { spec: { endpoint: endpoint(sealed(ids[2])) }, status: { signing: { ...signing, key: ids[2] } } },
          { spec: { endpoint: endpoint() }, status: { signing: rotated } },
        ],
        keys,
        ms,
      ),
    );
  const missing = { signing: 1, header: 1 };
  expect(countAt(nowMs)).toEqual({
    'root.key': { signing: 3, header: 1 },
    'root.key.2': { signing: 1, header: 1 },
    missing,
  });
  const later = countAt(nowMs + 24 * 3_600_000);
  expect(later).toEqual({ 'root.key': { signing: 2, header: 1 }, 'root.key.2': { signing: 1, header: 1 }, missing });
});
