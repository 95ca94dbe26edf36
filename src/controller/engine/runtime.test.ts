import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { NAMESPACES } from '../../kube/resource.ts';
import { createLogger } from '../../telemetry/log.ts';
import { sleep } from '../../time/clock.ts';
import type { Term } from './elector.ts';
import type { Controller } from './keyed-controller.ts';
import { createRuntime, type RuntimeOptions } from './runtime.ts';

const log = createLogger({ level: 'silent' });

function createCaches(more: Partial<RuntimeOptions> = {}) {
  const clock = createManualClock();
  const story: string[] = [];
  const synced = Promise.withResolvers<void>();
  const lost = new AbortController();
  let filled = false;
  const reflector: RuntimeOptions['reflectors'][number] = {
    resource: NAMESPACES,
    run: signal => new Promise(resolve => signal.addEventListener('abort', () => resolve())),
    hasSynced: () => filled,
    synced: synced.promise,
    lastHeardMs: () => (filled ? 0 : undefined),
    relist: async () => {
      story.push('relist');
    },
  };
  const controller: Controller = {
    name: 'things',
    sources: [],
    enqueue: () => {},
    enqueueAfter: () => {},
    isPending: () => false,
    run: async stop => {
      story.push('controller starts');
      await new Promise<void>(resolve => stop.addEventListener('abort', () => resolve()));
      await sleep(clock, 1_000);
      story.push('controller has drained');
    },
  };
  const elector: RuntimeOptions['elector'] = {
    run: async (_stop, { onStartedLeading }) => {
      story.push('elected');
      await onStartedLeading({ transitions: 3, signal: lost.signal }).catch((error: Error) => {
        story.push(`failed: ${error.message}`);
      });
      story.push('released');
    },
    isLeader: () => story.includes('elected') && !story.includes('released'),
  };
  const runtime = createRuntime({
    reflectors: [reflector],
    controllers: [controller],
    elector,
    prepare: async ({ transitions }: Term) => {
      story.push(`prepare ${transitions}`);
    },
    finish: async () => {
      story.push('finish');
    },
    clock,
    log,
    ...more,
  });
  const stop = new AbortController();
  const running = runtime.run(stop.signal);
  return {
    clock,
    story,
    stop,
    lost,
    running,
    runtime,
    fill: () => {
      filled = true;
      synced.resolve();
    },
  };
}

describe('runtime', () => {
  it('fills the caches, is elected, lists again, prepares, works, and stops in the reverse order', async () => {
    const caches = createCaches();
    await caches.clock.advance(5_000);
    expect(caches.story).toEqual([]);
    expect(caches.runtime.readiness()).toEqual({
      ready: false,
      missing: ['/api/v1/namespaces'],
      leading: false,
      silentMs: undefined,
    });
    caches.fill();
    await caches.clock.advance(10);
    expect(caches.runtime.readiness()).toEqual({ ready: true, missing: [], leading: true, silentMs: 5_010 });
    await caches.clock.advance(174_990);
    expect(caches.runtime.outdated()).toEqual([]);
    await caches.clock.advance(1);
    expect(caches.runtime.outdated()).toEqual(['/api/v1/namespaces']);
    caches.stop.abort();
    await caches.clock.advance(1_000);
    await caches.running;
    expect(caches.story).toEqual([
      'elected',
      'relist',
      'prepare 3',
      'controller starts',
      'controller has drained',
      'released',
      'finish',
    ]);
    expect(caches.clock.pendingTimers()).toBe(0);
  });

  it('tries the preparation again until it succeeds', async () => {
    let failures = 3;
    const caches = createCaches({
      prepare: async () => {
        if (failures-- > 0) throw new Error('Redis is unavailable');
      },
    });
    caches.fill();
    await caches.clock.advance(100);
    expect(caches.story).not.toContain('controller starts');
    await caches.clock.advance(5_000);
    expect(caches.story).toContain('controller starts');
    caches.stop.abort();
    await caches.clock.advance(1_000);
    await caches.running;
  });

  it('starts its controllers after 10 s even if no preparation succeeds', async () => {
    const caches = createCaches({ prepare: () => Promise.reject(new Error('Redis is unavailable')) });
    caches.fill();
    await caches.clock.advance(9_900);
    expect(caches.story).not.toContain('controller starts');
    await caches.clock.advance(200);
    expect(caches.story).toContain('controller starts');
    caches.stop.abort();
    await caches.clock.advance(1_000);
    await caches.running;
    expect(caches.story).toContain('controller has drained');
    expect(caches.clock.pendingTimers()).toBe(0);
  });

  it('continues to prepare while its controllers are running', async () => {
    let isAway = true;
    const caches = createCaches({
      prepare: async () => {
        if (isAway) throw new Error('Redis is unavailable');
      },
    });
    caches.fill();
    await caches.clock.advance(30_000);
    isAway = false;
    await caches.clock.advance(60_000);
    expect(caches.story).toEqual(['elected', 'relist', 'controller starts']);
    caches.stop.abort();
    await caches.clock.advance(1_000);
    await caches.running;
  });

  it('releases the lease if no preparation succeeds for a minute', async () => {
    const given: unknown[] = [];
    const caches = createCaches({
      prepare: () => Promise.reject(new Error('Redis is unavailable')),
      onGivenUp: error => given.push(error),
    });
    caches.fill();
    await caches.clock.advance(59_000);
    expect(caches.story).not.toContain('released');
    // The last attempt starts at most 6.25 s after the minute, and draining takes 1 s.
    await caches.clock.advance(1_000 + 6_250 + 1_000);
    expect(caches.story.slice(2)).toEqual([
      'controller starts',
      'controller has drained',
      'failed: Redis is unavailable',
      'released',
      'finish',
    ]);
    expect(given).toEqual([new Error('Redis is unavailable')]);
    caches.stop.abort();
    await caches.clock.advance(1_000);
    await caches.running;
  });

  it('releases the lease if it is stopped during a preparation that does not end', async () => {
    const caches = createCaches({ prepare: () => new Promise(() => {}) });
    caches.fill();
    await caches.clock.advance(100);
    caches.stop.abort();
    await caches.clock.advance(1_000);
    expect(caches.story).toEqual(['elected', 'relist', 'released', 'finish']);
  });

  it('stops its controllers when the lease is lost', async () => {
    let terms = 0;
    const caches = createCaches({ onStartedLeading: () => void terms++ });
    caches.fill();
    await caches.clock.advance(10);
    expect(terms).toBe(1);
    caches.lost.abort();
    await caches.clock.advance(1_000);
    expect(caches.story).toContain('controller has drained');
    await caches.running;
  });

  it('does not wait indefinitely for work that does not end', async () => {
    const stuck: Controller = {
      name: 'stuck',
      sources: [],
      enqueue: () => {},
      enqueueAfter: () => {},
      isPending: () => false,
      run: () => new Promise(() => {}),
    };
    const caches = createCaches({ controllers: [stuck] });
    caches.fill();
    await caches.clock.advance(10);
    caches.stop.abort();
    await caches.clock.advance(14_000);
    expect(caches.story).not.toContain('released');
    // The process is killed 20 s after it was asked to stop. The remaining time is used for releasing the lease.
    await caches.clock.advance(1_000);
    expect(caches.story).toContain('released');
    await caches.running;
    expect(caches.story.at(-1)).toBe('finish');
  });

  it('does not wait indefinitely for the last step', async () => {
    const caches = createCaches({ finish: () => new Promise(() => {}) });
    caches.fill();
    await caches.clock.advance(10);
    caches.stop.abort();
    let isOver = false;
    void caches.running.then(() => (isOver = true));
    await caches.clock.advance(1_000 + 1_999);
    expect(isOver).toBe(false);
    await caches.clock.advance(1);
    expect(isOver).toBe(true);
  });
});
