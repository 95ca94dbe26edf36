import { expect, test } from 'vitest';
import { rootKeyFingerprint } from '../core/delivery/root-key-fingerprint.ts';
import { createHintIndex } from '../hints/hints.ts';
import { HINT_PARTITIONS, hintPartition } from '../redis/keys.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { createControlRecord } from './control-store.ts';
import { holdHints, watchRootKey } from './root-key-watch.ts';

const OURS = rootKeyFingerprint(Buffer.alloc(32, 1));
const OTHER = rootKeyFingerprint(Buffer.alloc(32, 2));

test('fingerprints tell keys apart, and are neither the key nor its hash', () => {
  expect(OURS).toMatch(/^[\w-]{43}$/);
  expect(OURS).not.toBe(OTHER);
  expect(rootKeyFingerprint(Buffer.alloc(32, 1))).toBe(OURS);
});

onEachRedis(redis => {
  test('a role compares its root key with that of the controller that led last', async () => {
    await redis().callAll('FLUSHALL');
    const timers: number[] = [];
    let matches = 0;
    const watch = await watchRootKey({
      redis: redis(),
      fingerprint: OURS,
      onMatch: () => matches++,
      setTimer: (_run, ms) => {
        timers.push(ms);
        return () => {};
      },
    });
    // Before any controller there is nothing to compare with.
    expect([watch.differs(), watch.impairments(), timers]).toEqual([false, [], [1_000]]);

    await createControlRecord(redis(), OTHER).lead('uid', 0, 1);
    await watch.look();
    expect(watch.differs()).toBe(true);
    expect(watch.impairments()).toEqual([
      { reason: 'RootKeyMismatch', cause: 'settings', message: expect.stringContaining('SLUICE_ROOT_KEY_FILE') },
    ]);
    expect(matches).toBe(0);

    await createControlRecord(redis(), OURS).lead('uid', 1, 2);
    await watch.look();
    expect([watch.differs(), watch.impairments(), matches]).toEqual([false, [], 1]);
    // A controller of another cluster changes nothing.
    await createControlRecord(redis(), OTHER).lead('foreign', 1, 3);
    await watch.look();
    expect(watch.differs()).toBe(false);
  });

  test('hints that are held stay due', async () => {
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
