import { describe, expect, it, vi } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { cacheBehind, errorFromStatus } from '../../kube/kube-error.ts';
import type { AnyObject } from '../../kube/object.ts';
import { createReflected } from '../../kube/reflected.ts';
import type { Reflector } from '../../kube/reflector.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { sleep } from '../../time/clock.ts';
import { createControllerMetrics } from './controller-metrics.ts';
import { changedKeysFrom, createKeyedController, type KeyedControllerOptions, keysFrom } from './keyed-controller.ts';

function start(
  options: Pick<KeyedControllerOptions, 'reconcile' | 'keys' | 'sources' | 'workers' | 'retry'> &
    Partial<Pick<KeyedControllerOptions, 'log'>>,
) {
  const clock = createManualClock();
  const registry = createRegistry();
  const controller = createKeyedController({
    name: 'pairs',
    clock,
    log: createLogger({ level: 'silent' }),
    metrics: createControllerMetrics(registry)('pairs'),
    ...options,
  });
  const stop = new AbortController();
  const running = controller.run(stop.signal, new AbortController().signal);
  return { clock, controller, registry, stop, running };
}

describe('keyed controller', () => {
  it('processes the initial keys after keys that have changed', async () => {
    const seen: string[] = [];
    const { clock, controller, stop, running } = start({
      keys: () => ['old-1', 'old-2', 'old-3'],
      reconcile: async key => {
        seen.push(key);
        await sleep(clock, 10);
      },
    });
    await clock.advance(0);
    controller.enqueue('new');
    controller.enqueue('audited', 'background');
    await clock.advance(100);
    expect(seen).toEqual(['old-1', 'new', 'old-2', 'old-3', 'audited']);
    stop.abort();
    await running;
  });

  it('processes a key once if a change contains it twice', () => {
    const reflected = createReflected<AnyObject>({ project: object => object, log: createLogger({ level: 'silent' }) });
    const added: string[] = [];
    const source = keysFrom(reflected as unknown as Reflector<AnyObject>, (old, current) =>
      [old, current].flatMap(each => (each === undefined ? [] : [each.metadata.uid])),
    );
    source.subscribe(key => added.push(key));
    const of = (uid: string, version: string) => ({ metadata: { name: 'a', uid, resourceVersion: version } });
    reflected.apply({ type: 'ADDED', object: of('u1', '1') });
    reflected.apply({ type: 'MODIFIED', object: of('u1', '2') });
    reflected.apply({ type: 'MODIFIED', object: of('u2', '3') });
    expect(added).toEqual(['u1', 'u1', 'u1', 'u2']);
  });

  it('does not add many keys in a single turn of the event loop, neither at the start nor after a change', async () => {
    const reflected = createReflected<AnyObject>({ project: object => object, log: createLogger({ level: 'silent' }) });
    const many = Array.from({ length: 10_000 }, (_, n) => `acme/${n}`);
    const source = keysFrom(reflected as unknown as Reflector<AnyObject>, () => many);
    const put = (version: string) =>
      reflected.apply({ type: 'ADDED', object: { metadata: { name: 'a', uid: 'u1', resourceVersion: version } } });
    put('1');
    expect([...changedKeysFrom(reflected as unknown as Reflector<AnyObject>, () => many).keys()]).toEqual([]);
    const { controller, stop, running } = start({ sources: [source], reconcile: () => new Promise(() => {}) });
    expect(controller.isPending('acme/99')).toBe(true);
    expect(controller.isPending('acme/9999')).toBe(false);
    await vi.waitFor(() => expect(controller.isPending('acme/9999')).toBe(true));
    stop.abort();
    let added = 0;
    const unsubscribe = source.subscribe(() => void added++);
    put('2');
    expect(added).toBe(100);
    await vi.waitFor(() => expect(added).toBe(many.length));
    unsubscribe();
    void running;
  });

  it('does not process many keys in a single turn of the event loop if they have nothing to wait for', async () => {
    let processed = 0;
    const { controller, stop, running } = start({ workers: 4, reconcile: async () => void processed++ });
    for (let i = 0; i < 3_000; i++) controller.enqueue(`key-${i}`);
    let most = 0;
    for (let last = 0; processed < 3_000; last = processed) {
      await new Promise(setImmediate);
      most = Math.max(most, processed - last);
    }
    expect(most).toBeLessThan(300);
    stop.abort();
    await running;
  });

  it('shares the turns of the event loop with other controllers', async () => {
    let processed = 0;
    const all = [1, 2, 3].map(() => start({ workers: 4, reconcile: async () => void processed++ }));
    for (const { controller } of all) for (let i = 0; i < 1_000; i++) controller.enqueue(`key-${i}`);
    let most = 0;
    for (let last = 0; processed < 3_000; last = processed) {
      await new Promise(setImmediate);
      most = Math.max(most, processed - last);
    }
    // This can include the end of one turn and the beginning of the next one. Separately, they would process 768.
    expect(most).toBeLessThan(600);
    for (const { stop } of all) stop.abort();
    await Promise.all(all.map(({ running }) => running));
  });

  it('only determines the keys of a change when they are added', async () => {
    const reflected = createReflected<AnyObject>({ project: object => object, log: createLogger({ level: 'silent' }) });
    let determined = 0;
    const source = keysFrom(reflected as unknown as Reflector<AnyObject>, function* () {
      for (; determined < 10_000; determined++) yield `acme/${determined >> 1}`;
    });
    const added: string[] = [];
    source.subscribe(key => added.push(key));
    reflected.apply({ type: 'ADDED', object: { metadata: { name: 'a', uid: 'u1', resourceVersion: '1' } } });
    expect(determined).toBeLessThan(250);
    await vi.waitFor(() => expect(determined).toBe(10_000));
    expect(added).toEqual(Array.from({ length: 5_000 }, (_, i) => `acme/${i}`));
  });

  it('logs a few failures completely, and only some of them while many keys fail', async () => {
    const lines: object[] = [];
    const { clock, controller, stop, running } = start({
      retry: { firstMs: 600_000, mostMs: 600_000 },
      log: createLogger({ level: 'info' }, { write: line => void lines.push(JSON.parse(line)) }),
      reconcile: () => Promise.reject(new Error('no answer')),
    });
    const failAll = async (keys: readonly string[]) => {
      lines.length = 0;
      for (const key of keys) controller.enqueue(key);
      await clock.advance(10_000);
      return lines;
    };
    const line = { level: 'warn', err: { message: 'no answer' }, msg: 'failed to reconcile, retrying' };
    expect(await failAll(['a', 'b'])).toMatchObject([
      { ...line, key: 'a' },
      { ...line, key: 'b' },
    ]);
    const keys = Array.from({ length: 100 }, (_, i) => `key-${i}`);
    expect(await failAll(keys)).toHaveLength(20);
    expect((await failAll(keys))[0]).toMatchObject({ ...line, suppressed: 80 });
    stop.abort();
    await running;
  });

  it('logs a missing permission for a few keys each minute, without a stack', async () => {
    const lines: object[] = [];
    const message = 'cannot patch resource "catalogstreams/status"';
    const forbidden = errorFromStatus('PATCH /x', 403, { kind: 'Status', reason: 'Forbidden', message });
    const { clock, controller, stop, running } = start({
      log: createLogger({ level: 'info' }, { write: line => void lines.push(JSON.parse(line)) }),
      reconcile: () => Promise.reject(forbidden),
    });
    for (let i = 0; i < 30; i++) controller.enqueue(`key-${i}`);
    await clock.advance(59_000);
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatchObject({ level: 'warn', key: 'key-0', detail: forbidden.message });
    expect(JSON.stringify(lines)).not.toContain('stack');
    stop.abort();
    await running;
  });

  it('processes as many keys concurrently as there are workers', async () => {
    let active = 0;
    let most = 0;
    const { clock, controller, stop, running, registry } = start({
      workers: 3,
      reconcile: async () => {
        active++;
        most = Math.max(most, active);
        await sleep(clock, 10);
        active--;
      },
    });
    for (let i = 0; i < 10; i++) controller.enqueue(`key-${i}`);
    await clock.advance(5);
    expect(await registry.metrics()).toContain('controller_runtime_active_workers{controller="pairs"} 3');
    await clock.advance(100);
    expect(most).toBe(3);
    stop.abort();
    await running;
  });

  it('keeps workers free for other tenants if the keys of a tenant are slow', async () => {
    let healthy = 0;
    const { clock, controller, stop, running } = start({
      workers: 4,
      retry: { firstMs: 5, mostMs: 5_000 },
      reconcile: async key => {
        if (key.startsWith('healthy')) return void healthy++;
        await sleep(clock, 5_000);
        // Slow keys can succeed, fail, or change.
        if (key.endsWith('1')) throw new Error('Redis does not answer');
        return { requeueAfterMs: 5_000 };
      },
    });
    for (let n = 0; n < 100; n++) controller.enqueue(`slow-${n}/key`);
    for (let n = 0; n < 100; n++) controller.enqueue(`slow-${n}/1`);
    await clock.advance(600_000);
    for (let n = 0; n < 20; n++) {
      controller.enqueue(`healthy-${n}/key`);
      await clock.advance(1_000);
    }
    expect(healthy).toBe(20);
    stop.abort();
    await clock.advance(10_000);
    await running;
  });

  it('counts the failures of a key, and resets the count after a success', async () => {
    const failures: number[] = [];
    const { clock, controller, stop, running } = start({
      reconcile: async (_key, attempt) => {
        failures.push(attempt.failures);
        if (failures.length < 4) throw new Error('not yet');
        return { requeueAfterMs: 1_000 };
      },
    });
    controller.enqueue('key');
    await clock.advance(1_100);
    expect(failures).toEqual([0, 1, 2, 3, 0]);
    stop.abort();
    await running;
    expect(clock.pendingTimers()).toBe(0);
  });

  it('retries conflicts within 200 ms each, without counting them as failures', async () => {
    const failures: number[] = [];
    const atMs: number[] = [];
    const { clock, controller, stop, running, registry } = start({
      reconcile: async (_key, attempt) => {
        failures.push(attempt.failures);
        atMs.push(clock.nowMs());
        // A failure in between is counted as well.
        if (failures.length === 3) throw new Error('not yet');
        if (failures.length <= 12) throw cacheBehind('patch x');
      },
    });
    controller.enqueue('key');
    await clock.advance(20);
    expect(controller.isPending('key')).toBe(true);
    await clock.advance(5_000);
    expect(failures).toEqual([0, 0, 0, ...Array.from({ length: 10 }, () => 1)]);
    const pauses = atMs.slice(1).map((ms, index) => ms - (atMs[index] as number));
    expect(pauses).toEqual([5, 10, 5, 20, 40, 80, 160, 200, 200, 200, 200, 200]);
    expect(controller.isPending('key')).toBe(false);
    expect(await registry.metrics()).toContain('controller_runtime_reconcile_errors_total{controller="pairs"} 1');
    // After a success, the backoff starts again.
    failures.length = 11;
    atMs.length = 0;
    controller.enqueue('key');
    await clock.advance(1_000);
    expect(atMs).toHaveLength(2);
    expect((atMs[1] as number) - (atMs[0] as number)).toBe(5);
    stop.abort();
    await running;
  });

  it('does not process keys while it is not running', async () => {
    const seen: string[] = [];
    const { clock, controller, stop, running } = start({
      reconcile: async key => {
        seen.push(key);
      },
    });
    stop.abort();
    await running;
    controller.enqueue('late');
    controller.enqueueAfter('later', 1);
    await clock.advance(1_000);
    expect(seen).toEqual([]);
  });
});
