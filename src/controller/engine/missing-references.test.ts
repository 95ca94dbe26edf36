import { describe, expect, it } from 'vitest';
import { READY, startKind, type Thing } from '../../../test/support/controller/kind-caches.ts';
import type { ReadyReason } from '../../api/condition-reasons.ts';
import { waiting, waitingForReference } from './outcome.ts';

const MINUTE_MS = 60_000;

/**
 * A kind with objects that are named after their missing reference. `human` does not wait for an object, and `found`
 * does not wait.
 */
async function judge({ spec }: Thing) {
  if (spec.say === 'found') return { conditions: [READY] };
  const reason = `WaitingFor${spec.say}` as ReadyReason;
  return spec.say === 'human' ? waiting(reason, 'not yet') : waitingForReference(reason, 'not yet');
}

describe('a missing reference', () => {
  it('fails the object after five minutes with one additional write, and recovers', async () => {
    let turns = 0;
    let missing = true;
    const caches = startKind({
      reconcile: object => {
        turns++;
        return missing ? judge(object) : judge({ ...object, spec: { say: 'found' } });
      },
    });
    caches.put('a', 'Stream');
    await caches.clock.advance(5 * MINUTE_MS - 1_000);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'Unknown', reason: 'WaitingForStream' });
    expect([turns, caches.writes.length]).toEqual([1, 1]);
    await caches.clock.advance(1_000);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'False', reason: 'WaitingForStream' });
    expect(caches.condition('a', 'Stalled')).toMatchObject({ status: 'True', reason: 'WaitingForStream' });
    expect(caches.condition('a', 'Reconciling')).toBeUndefined();
    expect([turns, caches.writes.length]).toEqual([2, 2]);
    caches.controller.enqueue('ns/a');
    await caches.clock.advance(60 * MINUTE_MS);
    expect([turns, caches.writes.length]).toEqual([3, 2]);
    missing = false;
    caches.controller.enqueue('ns/a');
    await caches.clock.advance(10);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'True' });
    expect(caches.condition('a', 'Stalled')).toBeUndefined();
  });

  it('continues to count after a restart of the controller', async () => {
    const before = startKind({ reconcile: judge });
    before.put('a', 'Stream');
    await before.clock.advance(3 * MINUTE_MS);
    const after = startKind({ reconcile: judge });
    await after.clock.advance(3 * MINUTE_MS);
    after.adopt(before.get('a') as Thing);
    await after.clock.advance(2 * MINUTE_MS - 1_000);
    expect(after.condition('a', 'Ready')).toMatchObject({ status: 'Unknown' });
    await after.clock.advance(1_000);
    expect(after.condition('a', 'Ready')).toMatchObject({ status: 'False' });
    expect(after.writes).toHaveLength(1);
  });

  it('starts again for another reference, and after a change', async () => {
    const caches = startKind({ reconcile: judge });
    caches.put('a', 'human');
    await caches.clock.advance(60 * MINUTE_MS);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'Unknown', reason: 'WaitingForhuman' });
    caches.put('a', 'Stream');
    await caches.clock.advance(4 * MINUTE_MS);
    caches.put('a', 'Stream');
    await caches.clock.advance(4 * MINUTE_MS);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'Unknown', reason: 'WaitingForStream' });
    await caches.clock.advance(MINUTE_MS);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'False', reason: 'WaitingForStream' });
    caches.put('a', 'Stream');
    await caches.clock.advance(MINUTE_MS);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'Unknown', reason: 'WaitingForStream' });
  });
});
