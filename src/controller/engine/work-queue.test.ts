import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { createQueueMetrics } from './queue-metrics.ts';
import { createWorkQueue } from './work-queue.ts';

function createQueue() {
  const clock = createManualClock();
  return { clock, queue: createWorkQueue({ clock }) };
}

describe('work queue', () => {
  it('returns a key once, even if it was added several times', async () => {
    const { queue } = createQueue();
    queue.add('a');
    queue.add('b');
    queue.add('a');
    expect(queue.depth()).toBe(2);
    expect([await queue.get(), await queue.get()]).toEqual(['a', 'b']);
    expect(queue.depth()).toBe(0);
  });

  it('returns a key again that was added while it was processed, but only afterwards', async () => {
    const { clock, queue } = createQueue();
    queue.add('a');
    await queue.get();
    queue.add('a');
    queue.add('a');
    let second: string | undefined;
    void queue.get().then(key => {
      second = key;
    });
    await clock.advance(0);
    expect(second).toBeUndefined();
    queue.done('a');
    await clock.advance(0);
    expect(second).toBe('a');
    queue.done('a');
    expect(queue.depth()).toBe(0);
  });

  it('processes current changes before background work', async () => {
    const { queue } = createQueue();
    queue.addInBackground('audit-1');
    queue.addInBackground('audit-2');
    queue.add('now');
    queue.add('audit-2');
    expect([await queue.get(), await queue.get(), await queue.get()]).toEqual(['now', 'audit-2', 'audit-1']);
  });

  it('delays failures from 5 ms, doubling until the key is forgotten', async () => {
    const { clock, queue } = createQueue();
    const pauses: number[] = [];
    for (let failures = 0; failures < 20; failures++) {
      const beganMs = clock.nowMs();
      queue.addRateLimited('a');
      while (queue.depth() === 0) await clock.advance(clock.pendingTimers() > 0 ? 5 : 0);
      pauses.push(clock.nowMs() - beganMs);
      await queue.get();
      queue.done('a');
      if (failures > 9) break;
    }
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120]);
    expect(queue.numRequeues('a')).toBe(11);
    queue.forget('a');
    expect(queue.numRequeues('a')).toBe(0);
  });

  it('never waits longer than 1,000 s', async () => {
    const { clock, queue } = createQueue();
    for (let i = 0; i < 200; i++) queue.addRateLimited(`warm-up-${i % 2}`);
    await clock.advance(1_000_000);
    expect(queue.depth()).toBe(2);
  });

  it('uses a single timer for all delayed keys', async () => {
    const { clock, queue } = createQueue();
    for (let i = 0; i < 100; i++) queue.addAfter(`key-${i}`, 1_000 - i);
    expect(clock.pendingTimers()).toBe(1);
    await clock.advance(1_000);
    expect(queue.depth()).toBe(100);
    expect(clock.pendingTimers()).toBe(0);
  });

  it('does not accept keys after a shutdown, and waits for work in progress', async () => {
    const { clock, queue } = createQueue();
    queue.add('working');
    queue.add('waiting');
    await queue.get();
    queue.addAfter('later', 10);
    let drained = false;
    const shutDown = queue.shutDown().then(() => {
      drained = true;
    });
    queue.add('late');
    expect(await queue.get()).toBeUndefined();
    await clock.advance(100);
    expect(drained).toBe(false);
    queue.done('working');
    await shutDown;
    expect(queue.depth()).toBe(0);
    expect(clock.pendingTimers()).toBe(0);
  });

  it('wakes waiting workers when it shuts down', async () => {
    const { queue } = createQueue();
    const waiting = queue.get();
    await queue.shutDown();
    expect(await waiting).toBeUndefined();
  });

  it('never gives a key to two workers, and does not lose any key', async () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const step = fc.oneof(
      fc.record({ do: fc.constantFrom('add' as const, 'background' as const, 'rateLimited' as const), key }),
      fc.record({ do: fc.constant('after' as const), key, delayMs: fc.integer({ min: -1, max: 30 }) }),
      fc.record({ do: fc.constant('finish' as const), worker: fc.nat(2) }),
      fc.record({ do: fc.constant('wait' as const), delayMs: fc.nat(20) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
        const { clock, queue } = createQueue();
        /** The number of the last add for which work has not started yet, by key. */
        const owed = new Set<string>();
        const working: (string | undefined)[] = [undefined, undefined, undefined];
        const take = (worker: number) => {
          void queue.get().then(taken => {
            if (taken === undefined) return;
            expect(working).not.toContain(taken);
            working[worker] = taken;
            owed.delete(taken);
          });
        };
        const finish = (worker: number) => {
          const finished = working[worker];
          if (finished === undefined) return;
          working[worker] = undefined;
          queue.done(finished);
          take(worker);
        };
        for (const worker of working.keys()) take(worker);
        for (const action of steps) {
          if ('key' in action) owed.add(action.key);
          if (action.do === 'add') queue.add(action.key);
          if (action.do === 'background') queue.addInBackground(action.key);
          if (action.do === 'rateLimited') queue.addRateLimited(action.key);
          if (action.do === 'after') queue.addAfter(action.key, action.delayMs);
          if (action.do === 'finish') finish(action.worker);
          await clock.advance(action.do === 'wait' ? action.delayMs : 0);
        }
        for (let i = 0; i < 10; i++) {
          await clock.advance(2_000_000);
          for (const worker of working.keys()) finish(worker);
        }
        await clock.advance(0);
        expect([...owed]).toEqual([]);
        expect(queue.depth()).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it('removes 100,000 keys as fast as it adds them', async () => {
    const { queue } = createQueue();
    for (let i = 0; i < 100_000; i++) queue.addInBackground(`key-${i}`);
    const began = process.threadCpuUsage();
    for (let i = 0; i < 100_000; i++) queue.done((await queue.get()) as string);
    // This takes about 60 ms. Iterating over the holes of removed keys each time would take minutes.
    const { user, system } = process.threadCpuUsage(began);
    expect((user + system) / 1_000).toBeLessThan(5_000);
    expect(queue.depth()).toBe(0);
  });

  it('reports whether there is more work for a key', async () => {
    const { clock, queue } = createQueue();
    expect(queue.isPending('a')).toBe(false);
    queue.add('a');
    queue.addInBackground('b');
    expect([queue.isPending('a'), queue.isPending('b')]).toEqual([true, true]);
    await queue.get();
    expect(queue.isPending('a')).toBe(true);
    queue.addRateLimited('a');
    queue.done('a');
    expect(queue.isPending('a')).toBe(true);
    await clock.advance(1_000);
    while (queue.depth() > 0) queue.done((await queue.get()) as string);
    // The work continues until it succeeds.
    expect(queue.isPending('a')).toBe(true);
    queue.forget('a');
    expect([queue.isPending('a'), queue.isPending('b')]).toEqual([false, false]);
  });

  it('reports the same metrics as client-go', async () => {
    const registry = createRegistry();
    const clock = createManualClock();
    const queue = createWorkQueue({ clock, metrics: createQueueMetrics(registry)('blocks') });
    queue.add('a');
    queue.add('b');
    queue.add('b');
    await clock.advance(2_000);
    await queue.get();
    await clock.advance(3_000);
    queue.addRateLimited('c');
    const text = await registry.metrics();
    expect(text).toContain('workqueue_depth{name="blocks",controller="blocks"} 1');
    expect(text).toContain('workqueue_adds_total{name="blocks",controller="blocks"} 2');
    expect(text).toContain('workqueue_retries_total{name="blocks",controller="blocks"} 1');
    expect(text).toContain('workqueue_unfinished_work_seconds{name="blocks",controller="blocks"} 3');
    expect(text).toContain('workqueue_longest_running_processor_seconds{name="blocks",controller="blocks"} 3');
    expect(text).toContain('workqueue_queue_duration_seconds_sum{name="blocks",controller="blocks"} 2');
    queue.done('a');
    expect(await registry.metrics()).toContain(
      'workqueue_work_duration_seconds_sum{name="blocks",controller="blocks"} 3',
    );
  });
});
