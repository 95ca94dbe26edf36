import { describe, expect, it } from 'vitest';
import { READY, startKind } from '../../../test/support/controller/kind-caches.ts';
import { errorFromStatus } from '../../kube/kube-error.ts';
import { OutageError, waiting } from './outcome.ts';

describe('kind controller with failures', () => {
  it('returns a waiting result without counting an error', async () => {
    const caches = startKind({ reconcile: async () => waiting('WaitingForStream', 'no stream yet') });
    caches.put('a', 'x');
    await caches.clock.advance(10);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'Unknown', reason: 'WaitingForStream' });
    expect(caches.condition('a', 'Reconciling')).toMatchObject({ status: 'True' });
    expect(await caches.metrics()).toContain('controller_runtime_reconcile_errors_total{controller="things"} 0');
  });

  it('retries and reports a failure, and removes it after a success', async () => {
    let broken = true;
    const caches = startKind({
      reconcile: async () => {
        if (broken) throw new Error('internal');
        return { conditions: [READY] };
      },
    });
    caches.put('a', 'x');
    await caches.clock.advance(100);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'False', reason: 'ReconcileFailed' });
    expect(caches.condition('a', 'Reconciling')).toMatchObject({ reason: 'Retrying' });
    expect(caches.writes).toHaveLength(1);
    expect(caches.events).toEqual(['a ReconcileFailed']);
    broken = false;
    await caches.clock.advance(10_000);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'True' });
    expect(caches.condition('a', 'Reconciling')).toBeUndefined();
    const text = await caches.metrics();
    expect(text).toMatch(/controller_runtime_reconcile_total\{controller="things",result="error"\} [1-9]/);
    expect(text).toMatch(/controller_runtime_reconcile_errors_total\{controller="things"\} [1-9]/);
    expect(text).toContain('controller_runtime_max_concurrent_reconciles{controller="things"} 1');
    expect(text).toContain('controller_runtime_active_workers{controller="things"} 0');
  });

  it('writes the fields derived from the conditions, even after a failure', async () => {
    let broken = true;
    const caches = startKind({
      reconcile: async () => {
        if (broken) throw new Error('internal');
        return { conditions: [READY] };
      },
      fieldsOf: conditions => ({ result: conditions.find(({ type }) => type === 'Ready')?.reason }),
    });
    caches.put('a', 'x');
    await caches.clock.advance(100);
    expect(caches.get('a')?.status?.result).toBe('ReconcileFailed');
    broken = false;
    await caches.clock.advance(10_000);
    expect(caches.get('a')?.status?.result).toBe('Done');
    expect(caches.writes).toHaveLength(2);
  });

  it('keeps the status of a Ready object during a short outage', async () => {
    let broken = false;
    const caches = startKind({
      reconcile: async () => {
        if (broken) throw new Error('Redis is unavailable');
        return { conditions: [READY] };
      },
    });
    caches.put('a', 'x');
    await caches.clock.advance(10);
    broken = true;
    caches.controller.enqueue('ns/a');
    await caches.clock.advance(300);
    broken = false;
    await caches.clock.advance(10_000);
    expect(caches.writes).toHaveLength(1);
  });

  it('does not write an applied generation during an outage of any length, and writes other generations immediately', async () => {
    let away = false;
    const caches = startKind({
      workers: 4,
      reconcile: async () => {
        if (away) throw new OutageError('RedisUnavailable', 'Redis does not answer');
        return { conditions: [READY] };
      },
    });
    const names = Array.from({ length: 20 }, (_, i) => `a${i}`);
    for (const name of names) caches.put(name, 'x');
    await caches.clock.advance(10);
    expect(caches.writes).toHaveLength(20);
    away = true;
    for (const name of names) caches.controller.enqueue(`ns/${name}`);
    await caches.clock.advance(60_000);
    expect(caches.writes).toHaveLength(20);
    caches.put('a0', 'y');
    await caches.clock.advance(60_000);
    expect(caches.condition('a0', 'Ready')).toMatchObject({ status: 'False', reason: 'RedisUnavailable' });
    expect(caches.writes).toHaveLength(21);
    away = false;
    await caches.clock.advance(2_000_000);
    expect(caches.condition('a0', 'Ready')).toMatchObject({ status: 'True', observedGeneration: 2 });
    expect(caches.writes).toHaveLength(22);
    expect(caches.events).toEqual(['a0 RedisUnavailable']);
  });

  it('treats a conflict as an outdated cache, and not as an error', async () => {
    let conflicts = 1;
    const caches = startKind({
      reconcile: async () => {
        if (conflicts-- > 0) throw errorFromStatus('PATCH', 409, { kind: 'Status', reason: 'Conflict' });
        return { conditions: [READY] };
      },
    });
    caches.put('a', 'x');
    await caches.clock.advance(100);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'True' });
    const text = await caches.metrics();
    expect(text).toContain('controller_runtime_reconcile_errors_total{controller="things"} 0');
    expect(text).toContain('controller_runtime_reconcile_total{controller="things",result="requeue"} 1');
  });

  it('treats a field that another manager owns as a failure', async () => {
    const cause = { reason: 'FieldManagerConflict', field: '.data', message: 'conflict with "argocd" using v1' };
    const body = { kind: 'Status', reason: 'Conflict', details: { causes: [cause] } };
    const caches = startKind({
      reconcile: async () => {
        throw errorFromStatus('PATCH', 409, body);
      },
    });
    caches.put('a', 'x');
    await caches.clock.advance(100);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'False', reason: 'ReconcileFailed' });
  });

  it('does not write a failure after the lease was lost', async () => {
    const gate = Promise.withResolvers<void>();
    const caches = startKind({
      reconcile: async (_object, { signal }) => {
        await gate.promise;
        signal.throwIfAborted();
        return { conditions: [READY] };
      },
    });
    caches.put('a', 'x');
    await caches.clock.advance(10);
    caches.lost.abort(new Error('lost the lease'));
    caches.stop.abort();
    gate.resolve();
    await caches.running;
    expect(caches.writes).toEqual([]);
  });
});
