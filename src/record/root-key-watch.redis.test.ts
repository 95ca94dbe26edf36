import { expect, test } from 'vitest';
import { createKeyRing, keyRingOf } from '../core/delivery/key-ring.ts';
import { rootKeyFingerprint } from '../core/delivery/root-key-fingerprint.ts';
import { createHintIndex } from '../hints/hints.ts';
import type { RedisClient } from '../redis/client.ts';
import { CLUSTER_KEYS, HINT_PARTITIONS, hintPartition } from '../redis/keys.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { createControlRecord, FencedError } from './control-store.ts';
import { createRootKeyReport, readRootKeyReports } from './root-key-reports.ts';
import { holdHints, watchRootKey } from './root-key-watch.ts';

const OURS = rootKeyFingerprint(Buffer.alloc(32, 1));
const OTHER = rootKeyFingerprint(Buffer.alloc(32, 2));

test('fingerprints distinguish keys, and are neither the key nor its hash', () => {
  expect(OURS).toMatch(/^[\w-]{43}$/);
  expect(OURS).not.toBe(OTHER);
  expect(rootKeyFingerprint(Buffer.alloc(32, 1))).toBe(OURS);
});

onEachRedis(redis => {
  test('a role compares its root key with the root key of the last leader', async () => {
    await redis().callAll('FLUSHALL');
    const timers: number[] = [];
    let matches = 0;
    const watch = await watchRootKey({
      redis: redis(),
      keys: keyRingOf(Buffer.alloc(32, 1)),
      onMatch: () => matches++,
      setTimer: (_run, ms) => {
        timers.push(ms);
        return () => {};
      },
    });
    // Before the first controller, there is no key for a comparison.
    expect([watch.differs(), watch.impairments(), timers]).toEqual([false, [], [1_000]]);

    await createControlRecord(redis(), () => OTHER).lead('uid', 0, 1);
    await watch.look();
    expect(watch.differs()).toBe(true);
    expect(watch.impairments()).toEqual([
      { reason: 'RootKeyMismatch', cause: 'settings', message: expect.stringContaining('SLUICE_ROOT_KEY_FILE') },
    ]);
    expect(matches).toBe(0);

    await createControlRecord(redis(), () => OURS).lead('uid', 1, 2);
    await watch.look();
    expect([watch.differs(), watch.impairments(), matches]).toEqual([false, [], 1]);
    // A controller of a different cluster has no effect.
    await createControlRecord(redis(), () => OTHER).lead('foreign', 1, 3);
    await watch.look();
    expect(watch.differs()).toBe(false);
  });

  test('a key that is added later is used as the first key, and is read before each check', async () => {
    await redis().callAll('FLUSHALL');
    const [ours, theirs] = [1, 2].map(n => ({ name: `${n}`, secret: Buffer.alloc(32, n) }));
    if (ours === undefined || theirs === undefined) throw new Error('two keys');
    const keys = createKeyRing([ours]);
    let files = [ours];
    let matches = 0;
    await createControlRecord(redis(), () => OTHER).lead('uid', 0, 1);
    const watch = await watchRootKey({
      redis: redis(),
      keys,
      before: async () => keys.replace(files),
      onMatch: () => matches++,
      setTimer: () => () => {},
    });
    expect(watch.differs()).toBe(true);
    files = [ours, theirs];
    await watch.look();
    expect([watch.differs(), matches, keys.first().name]).toEqual([false, 1, '2']);
    files = [ours, theirs, { name: '3', secret: Buffer.alloc(32, 3) }];
    await watch.look();
    expect([keys.newest().name, keys.first().name]).toEqual(['3', '2']);
  });

  test('a new leader continues with the root key of the last leader, and publishes another one', async () => {
    await redis().callAll('FLUSHALL');
    const asked: (string | undefined)[] = [];
    const record = createControlRecord(redis(), last => {
      asked.push(last);
      return last ?? OURS;
    });
    const rootKey = async () => (await redis().readHash(CLUSTER_KEYS.meta)).rootKey;
    await record.lead('uid', 0, 1);
    const answer = await record.lead('uid', 1, 2);
    expect([asked, await rootKey()]).toEqual([[undefined, OURS], OURS]);
    const epoch = 'epoch' in answer ? answer.epoch : 0;
    await record.publishRootKey(epoch, OTHER);
    expect(await rootKey()).toBe(OTHER);
    await expect(record.publishRootKey(epoch - 1, OURS)).rejects.toThrow(FencedError);
    expect(await rootKey()).toBe(OTHER);
  });

  test('replicas report their keys when they change and every 30 seconds, and are removed after 90 seconds', async () => {
    await redis().callAll('FLUSHALL');
    const clock = { ms: 1_800_000_000_000 };
    const keys = keyRingOf(Buffer.alloc(32, 1));
    let writes = 0;
    const counted = {
      ...redis(),
      call: (...args: Parameters<RedisClient['call']>) => (writes++, redis().call(...args)),
    };
    const one = createRootKeyReport(counted, 'one', keys, () => clock.ms);
    const two = createRootKeyReport(redis(), 'two', keyRingOf(Buffer.alloc(32, 2)), () => clock.ms);
    const read = async () => Object.fromEntries(await readRootKeyReports(redis(), clock.ms));
    await Promise.all([one.write(), two.write()]);
    expect(await read()).toEqual({ one: [OURS.slice(0, 10)], two: [OTHER.slice(0, 10)] });
    clock.ms += 29_999;
    await one.write();
    expect(writes).toBe(1);
    clock.ms += 1;
    await one.write();
    expect(writes).toBe(2);
    keys.replace([1, 2].map(n => ({ name: `${n}`, secret: Buffer.alloc(32, n) })));
    await one.write();
    expect((await read()).one).toEqual([OURS.slice(0, 10), OTHER.slice(0, 10)]);
    clock.ms += 60_000;
    expect(Object.keys(await read())).toEqual(['one']);
    expect(await redis().call('zcard', CLUSTER_KEYS.rootKeys)).toBe(1);
    await one.withdraw();
    expect(await read()).toEqual({});
  });

  test('the report after a restart replaces the previous one, which is removed when it is too old', async () => {
    await redis().callAll('FLUSHALL');
    const clock = { ms: 1_800_000_000_000 };
    const started = (n: number) => createRootKeyReport(redis(), 'one', keyRingOf(Buffer.alloc(32, n)), () => clock.ms);
    await started(1).write();
    clock.ms += 1;
    await started(2).write();
    const read = () => readRootKeyReports(redis(), clock.ms);
    expect([...(await read())]).toEqual([['one', [OTHER.slice(0, 10)]]]);
    clock.ms += 89_999;
    expect([...(await read())]).toEqual([['one', [OTHER.slice(0, 10)]]]);
    expect(await redis().call('zcard', CLUSTER_KEYS.rootKeys)).toBe(1);
  });

  test('hints that are held remain due', async () => {
    await redis().callAll('FLUSHALL');
    let held = true;
    const hints = createHintIndex(redis(), 's');
    const holding = holdHints(hints, () => held);
    await hints.lower([{ member: 'ten_a:run_b', dueMs: 5 }]);
    const partition = hintPartition('ten_a:run_b');
    expect(partition).toBeLessThan(HINT_PARTITIONS);
    expect((await holding.pick(partition, 10, 9, 1_000, 't')).members).toEqual([]);
    held = false;
    expect((await holding.pick(partition, 10, 9, 1_000, 't')).members).toEqual(['ten_a:run_b']);
  });
});
