import { describe, expect, test } from 'vitest';
import type { KeySet } from './issuer-documents.ts';
import { createIssuerKeys, IssuerUnavailableError } from './issuer-keys.ts';

const set = (...kids: string[]): KeySet => ({ keys: kids.map(kid => ({ kty: 'RSA', kid })) });

/** Keys for an issuer that publishes `kids` (undefined if it is down), with a clock that is stopped. */
function createWorld(...kids: string[]) {
  const world = { kids: kids as string[] | undefined, nowMs: 1_000_000, reads: 0, failures: 0 };
  const keys = createIssuerKeys({
    read: async () => {
      world.reads += 1;
      if (world.kids === undefined) throw new Error('down');
      return set(...world.kids);
    },
    limits: { refreshMs: 600_000, trustMs: 3_600_000, cooldownMs: 5_000, retryMs: 1_000 },
    nowMs: () => world.nowMs,
    onFailure: () => {
      world.failures += 1;
    },
  });
  return Object.assign(world, { keys });
}

test('are read once for all simultaneous and later requests', async () => {
  const world = createWorld('a');
  const found = await Promise.all([world.keys.find('a'), world.keys.find('a'), world.keys.find('a')]);
  expect(found).toEqual([set('a'), set('a'), set('a')]);
  await world.keys.find('a');
  expect(world.reads).toBe(1);
});

test('requests a new key immediately, even if the others are recent', async () => {
  const world = createWorld('a');
  await world.keys.find('a');
  world.kids = ['a', 'b'];
  expect(await world.keys.find('b')).toEqual(set('a', 'b'));
});

test('an unknown key begins the cool-down: it ends after five seconds', async () => {
  const world = createWorld('a');
  await world.keys.find('a');
  expect(await world.keys.find('x')).toBeUndefined();
  world.kids = ['a', 'b'];
  world.nowMs += 4_999;
  expect(await world.keys.find('b')).toBeUndefined();
  expect(world.reads).toBe(2);
  world.nowMs += 1;
  expect(await world.keys.find('b')).toEqual(set('a', 'b'));
});

test('are read again in the background after ten minutes: a withdrawn key is removed for the next request', async () => {
  const world = createWorld('a', 'b');
  await world.keys.find('a');
  world.kids = ['b'];
  world.nowMs += 599_999;
  await world.keys.find('a');
  expect(world.reads).toBe(1);
  world.nowMs += 1;
  expect(await world.keys.find('a')).toEqual(set('a', 'b'));
  expect(world.reads).toBe(2);
  await world.keys.find('b');
  expect(await world.keys.find('a')).toBeUndefined();
});

test('a key that was withdrawn is not used for the first request after a quiet time', async () => {
  const world = createWorld('a', 'b');
  await world.keys.find('a');
  world.kids = ['b'];
  world.nowMs += 660_000;
  expect(await world.keys.find('a')).toBeUndefined();
  expect(await world.keys.find('b')).toEqual(set('b'));
  expect(world.reads).toBe(2);
});

test('only the first request after a quiet time waits for an issuer that does not respond', async () => {
  const answers = [Promise.resolve(set('a')), Promise.reject(new Error('down')), new Promise<KeySet>(() => {})];
  let [reads, nowMs] = [0, 1_000_000];
  const keys = createIssuerKeys({
    read: () => answers[reads++] as Promise<KeySet>,
    limits: { refreshMs: 600_000, trustMs: 3_600_000, cooldownMs: 5_000, retryMs: 1_000 },
    nowMs: () => nowMs,
    onFailure: () => undefined,
  });
  await keys.find('a');
  nowMs += 660_000;
  expect(await keys.find('a')).toEqual(set('a'));
  nowMs += 1_000;
  expect(await keys.find('a')).toEqual(set('a'));
  expect(reads).toBe(3);
});

test('while the issuer is down they serve for an hour, and no longer', async () => {
  const world = createWorld('a');
  await world.keys.find('a');
  world.kids = undefined;
  world.nowMs += 3_599_999;
  expect(await world.keys.find('a')).toEqual(set('a'));
  await Promise.resolve();
  world.nowMs += 1;
  await expect(world.keys.find('a')).rejects.toThrow(IssuerUnavailableError);
});

test('reports a failure, and sends no requests for a second', async () => {
  const world = createWorld();
  world.kids = undefined;
  await expect(world.keys.find('a')).rejects.toThrow(IssuerUnavailableError);
  world.kids = ['a'];
  world.nowMs += 999;
  await expect(world.keys.find('a')).rejects.toThrow(IssuerUnavailableError);
  expect(world).toMatchObject({ reads: 1, failures: 1 });
  world.nowMs += 1;
  expect(await world.keys.find('a')).toEqual(set('a'));
});

test('a failed look for an unknown key is no answer about it', async () => {
  const world = createWorld('a');
  await world.keys.find('a');
  world.kids = undefined;
  await expect(world.keys.find('x')).rejects.toThrow(IssuerUnavailableError);
  await expect(world.keys.find('x')).rejects.toThrow(IssuerUnavailableError);
  expect(await world.keys.find('a')).toEqual(set('a'));
});

describe('a signature that is not valid', () => {
  /** Keys that were read five seconds ago. */
  async function start() {
    const world = createWorld('a');
    const tried = (await world.keys.find('a')) as KeySet;
    world.nowMs += 5_000;
    return { world, tried };
  }

  test('causes one look in a cool-down, for all simultaneous calls', async () => {
    const { world, tried } = await start();
    world.kids = ['a', 'b'];
    const calls = [1, 2, 3].map(() => world.keys.findNewer('a', tried));
    expect(await Promise.all(calls)).toEqual(calls.map(() => set('a', 'b')));
    expect(world.reads).toBe(2);
    const newer = (await world.keys.find('a')) as KeySet;
    for (let n = 0; n < 20; n++) expect(await world.keys.findNewer('a', newer)).toBeUndefined();
    // A call that has tried the previous keys gets the current ones.
    expect(await world.keys.findNewer('a', tried)).toBe(newer);
    expect(await world.keys.findNewer('x', tried)).toBeUndefined();
    expect(world.reads).toBe(2);
    world.nowMs += 5_000;
    expect(await world.keys.findNewer('a', newer)).toBeUndefined();
    expect(world.reads).toBe(3);
    expect(await world.keys.find('a')).toBe(newer);
  });

  test('shares its cool-down with unknown keys, in both directions', async () => {
    const { world, tried } = await start();
    expect(await world.keys.find('x')).toBeUndefined();
    expect(await world.keys.findNewer('a', tried)).toBeUndefined();
    expect(world.reads).toBe(2);
    world.nowMs += 5_000;
    await world.keys.findNewer('a', tried);
    expect(await world.keys.find('x')).toBeUndefined();
    expect(world.reads).toBe(3);
  });

  test('does not refuse a new key before its look has ended, or if it has failed', async () => {
    const { world, tried } = await start();
    world.kids = ['a', 'b'];
    const looking = world.keys.findNewer('a', tried);
    expect(await world.keys.find('b')).toEqual(set('a', 'b'));
    const newer = (await looking) as KeySet;
    expect(world.reads).toBe(2);
    world.nowMs += 5_000;
    world.kids = undefined;
    expect(await world.keys.findNewer('a', newer)).toBeUndefined();
    await expect(world.keys.find('c')).rejects.toThrow(IssuerUnavailableError);
  });

  test('is no reason to ask an issuer that is down more than once a second', async () => {
    const { world, tried } = await start();
    world.kids = undefined;
    for (let n = 0; n < 20; n++) expect(await world.keys.findNewer('a', tried)).toBeUndefined();
    expect(world).toMatchObject({ reads: 2, failures: 1 });
    expect(await world.keys.find('a')).toBe(tried);
  });
});
