import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { ChangeHandler } from '../../kube/reflected.ts';
import { createDeletionTimes } from './deletion-times.ts';

const HOUR_MS = 3_600_000;

function caches() {
  const clock = createManualClock();
  let tell: ChangeHandler<AnyObject> = () => {};
  const subscribe = (handler: ChangeHandler<AnyObject>) => {
    tell = handler;
    return () => {};
  };
  const silent = { subscribe: () => () => {} };
  const deleting = { workspace: 'going', instance: '', deleting: true };
  const namespaces = { store: new Map([['going', deleting]]) } as never;
  const times = createDeletionTimes(
    {
      Workspace: silent,
      CatalogStream: { subscribe: subscribe as never },
      Package: silent,
      Subscription: silent,
      namespaces,
    },
    clock,
  );
  const at = (deletionTimestampMs: number, uid = 'uid-a'): AnyObject => ({
    metadata: {
      name: 'a',
      uid,
      resourceVersion: '1',
      deletionTimestamp: new Date(deletionTimestampMs).toISOString(),
    },
  });
  return {
    clock,
    times,
    at,
    deleted: (object: AnyObject) => tell('deleted', 'a', object, undefined),
    updated: (object: AnyObject) => tell('updated', 'a', undefined, object),
  };
}

describe('deletion times', () => {
  it.each([
    ['an hour ahead of this process', HOUR_MS],
    ['an hour behind', -HOUR_MS],
  ])('start when this process has seen the deletion, with the clock of the API server %s', async (_name, offMs) => {
    const { clock, times, at } = caches();
    const object = at(clock.wallMs() + offMs);
    expect(times.deletingForMs(object)).toBe(0);
    await clock.advance(59_000);
    expect(times.deletingForMs(object)).toBe(59_000);
  });

  it('are counted while another replica leads', async () => {
    const { clock, times, at, updated } = caches();
    updated(at(0));
    await clock.advance(30_000);
    expect(times.deletingForMs(at(0))).toBe(30_000);
  });

  it('start again for an object with the same name, and are removed for deleted objects', async () => {
    const { clock, times, at, updated, deleted } = caches();
    updated(at(0));
    await clock.advance(30_000);
    expect(times.deletingForMs(at(0, 'uid-b'))).toBe(0);
    deleted(at(0));
    expect(times.deletingForMs(at(0))).toBe(0);
  });

  it('are undefined for an object that is not being deleted', async () => {
    const { clock, times } = caches();
    const object = { metadata: { name: 'a', uid: 'uid-a', resourceVersion: '1' } };
    expect(times.deletingForMs(object)).toBe(0);
    await clock.advance(1_000);
    expect(times.deletingForMs(object)).toBe(0);
  });

  it('do not count as stuck before the first failure, and again after the object has waited for something else', async () => {
    const { clock, times, at } = caches();
    const object = at(0);
    times.deletingForMs(object);
    await clock.advance(HOUR_MS);
    expect(times.stuckForMs(object)).toBe(0);
    await clock.advance(50_000);
    expect(times.stuckForMs(object)).toBe(50_000);
    times.noteWaiting(object);
    await clock.advance(50_000);
    expect(times.stuckForMs(object)).toBe(0);
  });

  it('count as stuck in several terms of a replica, unless there was a long time between them', async () => {
    const { clock, times, at } = caches();
    times.stuckForMs(at(0));
    await clock.advance(100_000);
    expect(times.stuckForMs(at(0))).toBe(100_000);
    await clock.advance(120_001);
    expect(times.stuckForMs(at(0))).toBe(0);
  });

  it('count from the deletion in a namespace that is being deleted', async () => {
    const { clock, times, at } = caches();
    const object = { metadata: { ...at(0).metadata, namespace: 'going' } };
    times.deletingForMs(object);
    await clock.advance(60_000);
    expect(times.stuckForMs(object)).toBe(60_000);
  });
});
