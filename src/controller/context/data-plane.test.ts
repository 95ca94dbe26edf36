import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createStore } from '../../kube/store.ts';
import type { Caches } from '../caches/caches.ts';
import { createDataPlane } from './data-plane.ts';

function start() {
  const clock = createManualClock();
  const store = createStore<object>();
  for (const name of ['acme', 'globex']) store.set(name, {});
  let away = false;
  const dataPlane = createDataPlane({
    caches: { Workspace: { store } } as unknown as Pick<Caches, 'Workspace'>,
    control: {
      readCluster: () => (away ? Promise.reject(new Error('unavailable')) : Promise.resolve({ ready: true } as never)),
    },
    clock,
  });
  const added: string[] = [];
  const stop = dataPlane.source.subscribe(key => added.push(key));
  return {
    clock,
    dataPlane,
    stop,
    setAway: (is: boolean) => {
      away = is;
    },
    takeAdded: () => added.splice(0),
  };
}

describe('data plane', () => {
  test('a failover of Redis is not reported', async () => {
    const { clock, setAway, takeAdded } = start();
    setAway(true);
    await clock.advance(55_000);
    setAway(false);
    await clock.advance(600_000);
    expect(takeAdded()).toEqual([]);
  });

  test('an outage of a minute and its end are reported once for every workspace', async () => {
    const { clock, dataPlane, setAway, takeAdded } = start();
    setAway(true);
    await clock.advance(65_000);
    expect(dataPlane.awayForMs('acme')).toBe(60_000);
    expect(takeAdded()).toEqual(['acme', 'globex']);
    await clock.advance(600_000);
    expect(takeAdded()).toEqual([]);
    setAway(false);
    await clock.advance(5_000);
    expect(dataPlane.awayForMs('acme')).toBe(0);
    expect(takeAdded()).toEqual(['acme', 'globex']);
  });

  test('an unavailable part of Redis only affects its workspace', async () => {
    const { clock, dataPlane } = start();
    dataPlane.note('acme', false);
    await clock.advance(30_000);
    dataPlane.note('acme', false);
    await clock.advance(30_000);
    expect([dataPlane.awayForMs('acme'), dataPlane.awayForMs('globex')]).toEqual([60_000, 0]);
    dataPlane.note('acme', true);
    expect(dataPlane.awayForMs('acme')).toBe(0);
  });

  test('stops checking when it is no longer the leader, and starts again with a new term', async () => {
    const { clock, dataPlane, stop, setAway } = start();
    setAway(true);
    await clock.advance(30_000);
    stop();
    await clock.advance(30_000);
    expect(clock.pendingTimers()).toBe(0);
    expect(dataPlane.awayForMs('acme')).toBe(0);
  });
});
