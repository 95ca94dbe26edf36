import { describe, expect, it } from 'vitest';
import { READY, startKind } from '../../../test/support/controller/kind-caches.ts';
import { FINALIZER } from '../../api/well-known.ts';
import type { ChangeHandler } from '../../kube/reflected.ts';
import { keysFrom } from './keyed-controller.ts';

describe('kind controller', () => {
  it('writes the status once, and nothing if there is no difference', async () => {
    let reconciled = 0;
    const caches = startKind({
      reconcile: async object => {
        reconciled++;
        return { status: { result: object.spec.say }, conditions: [READY] };
      },
    });
    caches.put('a', 'hello');
    await caches.clock.advance(10);
    expect(caches.writes).toEqual(['status ns/a']);
    // The watch delivers a status before the response to its write, which is not a change.
    expect(reconciled).toBe(1);
    expect(caches.get('a')?.status).toMatchObject({ result: 'hello', observedGeneration: 1 });
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'True', observedGeneration: 1 });
    for (let i = 0; i < 5; i++) {
      caches.controller.enqueue('ns/a');
      await caches.clock.advance(1_000);
    }
    expect(reconciled).toBeGreaterThan(5);
    expect(caches.writes).toHaveLength(1);
  });

  it('writes once even if its cache is outdated', async () => {
    const caches = startKind({ reconcile: async () => ({ conditions: [READY] }) });
    const object = caches.put('a', 'hello');
    caches.lag(true);
    await caches.clock.advance(10);
    for (let i = 0; i < 3; i++) {
      caches.controller.enqueue('ns/a');
      await caches.clock.advance(10);
    }
    expect(caches.writes).toHaveLength(1);
    expect(object.status).toBeUndefined();
  });

  it('restores a status that was changed by another client', async () => {
    const caches = startKind({
      reconcile: async object => ({ status: { result: object.spec.say }, conditions: [READY] }),
    });
    caches.put('a', 'hello');
    await caches.clock.advance(10);
    caches.lag(false);
    caches.put('a', 'hello', {});
    await caches.clock.advance(10);
    expect(caches.get('a')?.status?.observedGeneration).toBe(2);
    expect(caches.writes).toHaveLength(2);
  });

  it('adds the finalizer before the first effect and removes it after the last', async () => {
    const effects: (string | undefined)[] = [];
    let undone = 0;
    const caches = startKind({
      reconcile: async object => {
        effects.push(object.metadata.finalizers?.join());
        return { conditions: [READY] };
      },
      finalize: async () => {
        undone++;
        return undone === 1
          ? { conditions: [{ ...READY, status: 'False', reason: 'Draining' }], waitingMs: 1_000 }
          : 'done';
      },
    });
    caches.put('a', 'x', { finalizers: ['other/one'] });
    await caches.clock.advance(10);
    expect(caches.writes[0]).toBe('finalizers ns/a 2');
    caches.put('a', 'x', { deletionTimestamp: '2026-01-01T00:00:00Z' });
    await caches.clock.advance(10);
    expect(caches.condition('a', 'Ready')).toMatchObject({ status: 'False', reason: 'Draining' });
    await caches.clock.advance(1_000);
    expect(new Set(effects)).toEqual(new Set([`other/one,${FINALIZER}`]));
    expect(undone).toBe(2);
    expect(caches.get('a')?.metadata.finalizers).toEqual(['other/one']);
  });

  it('finalizes objects before older changes', async () => {
    const turns: string[] = [];
    const caches = startKind({
      reconcile: async ({ metadata }) => {
        turns.push(`reconcile ${metadata.name}`);
        return { conditions: [READY] };
      },
      finalize: async ({ metadata }) => {
        turns.push(`finalize ${metadata.name}`);
        return 'done';
      },
    });
    caches.put('z', 'x', { finalizers: [FINALIZER] });
    await caches.clock.advance(10);
    turns.length = 0;
    for (const name of ['a', 'b', 'c']) caches.put(name, 'x', { finalizers: [FINALIZER] });
    caches.put('z', 'x', { finalizers: [FINALIZER], deletionTimestamp: '2026-01-01T00:00:00Z' });
    await caches.clock.advance(10);
    // The only worker has waited for a key and started with the first key.
    expect(turns).toEqual(['reconcile a', 'finalize z', 'reconcile b', 'reconcile c']);
  });

  it('removes the finalizer again if it is there again, because etcd was restored', async () => {
    let effects = 0;
    const caches = startKind({
      reconcile: async () => ({ conditions: [READY] }),
      finalize: async () => {
        effects++;
        return 'done';
      },
    });
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    for (let restored = 0; restored < 2; restored++) {
      caches.put('a', 'x', { finalizers: ['other/one', FINALIZER], deletionTimestamp });
      await caches.clock.advance(10);
      expect(caches.get('a')?.metadata.finalizers).toEqual(['other/one']);
    }
    expect(effects).toBe(2);
  });

  it('removes the finalizer once, even if the cache is out of date', async () => {
    let effects = 0;
    const caches = startKind({
      reconcile: async () => ({ conditions: [READY] }),
      finalize: async () => {
        effects++;
        caches.lag(true);
        // In the meantime, a dependency of the object changes.
        if (effects === 1) caches.controller.enqueue('ns/a');
        return 'done';
      },
    });
    caches.put('a', 'x');
    await caches.clock.advance(10);
    caches.put('a', 'x', { ...caches.get('a')?.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' });
    await caches.clock.advance(1_000);
    expect(caches.get('a')).toBeUndefined();
    expect(effects).toBe(1);
    // Objects with the same name are handled separately.
    caches.lag(false);
    caches.relist();
    caches.put('a', 'y', { uid: 'another', finalizers: [], deletionTimestamp: undefined });
    await caches.clock.advance(10);
    caches.put('a', 'y', { ...caches.get('a')?.metadata, deletionTimestamp: '2026-01-01T00:00:01Z' });
    await caches.clock.advance(1_000);
    expect(effects).toBe(2);
  });

  it('ignores a deleted object without its finalizer', async () => {
    let calls = 0;
    const count = async () => {
      calls++;
      return { conditions: [READY] };
    };
    const caches = startKind({ reconcile: count });
    caches.put('a', 'x', { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['other/one'] });
    await caches.clock.advance(10);
    expect(calls).toBe(0);
    expect(caches.writes).toEqual([]);
  });

  it('only records Events along with a change of the status', async () => {
    const note = { type: 'Normal', reason: 'Made', message: 'made' } as const;
    const caches = startKind({ reconcile: async () => ({ conditions: [READY], events: [note] }) });
    caches.put('a', 'x');
    await caches.clock.advance(10);
    caches.controller.enqueue('ns/a');
    await caches.clock.advance(10);
    expect(caches.events).toEqual(['a Made']);
  });

  it('detects a change before its own write if a list contains both', async () => {
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const caches = startKind({
      reconcile: async ({ spec }) => {
        seen.push(spec.say);
        await gate.promise;
        return { conditions: [READY] };
      },
    });
    caches.put('a', 'before');
    await caches.clock.advance(10);
    caches.lag(true);
    caches.put('a', 'after');
    gate.resolve();
    await caches.clock.advance(10);
    expect(caches.writes).toEqual(['status ns/a']);
    caches.lag(false);
    caches.relist();
    await caches.clock.advance(10);
    expect(seen.at(-1)).toBe('after');
    expect(caches.condition('a', 'Ready')).toMatchObject({ observedGeneration: 2 });
  });

  it('reconciles again after the requested time', async () => {
    let calls = 0;
    const caches = startKind({
      reconcile: async () => {
        calls++;
        return { conditions: [READY], requeueAfterMs: 60_000 };
      },
    });
    caches.put('a', 'x');
    await caches.clock.advance(10);
    const before = calls;
    await caches.clock.advance(59_000);
    expect(calls).toBe(before);
    await caches.clock.advance(1_100);
    expect(calls).toBe(before + 1);
  });

  it('reconciles if a dependency changes', async () => {
    const handlers: ChangeHandler<string>[] = [];
    const other = {
      subscribe: (handler: ChangeHandler<string>) => {
        handlers.push(handler);
        return () => {};
      },
      store: { values: () => ['a'] },
    } as unknown as Parameters<typeof keysFrom<string>>[0];
    const seen: string[] = [];
    const caches = startKind({
      reconcile: async object => {
        seen.push(object.metadata.name);
        return { conditions: [READY] };
      },
      sources: [keysFrom(other, (old, current) => [old, current].flatMap(name => (name ? [`ns/${name}`] : [])))],
    });
    caches.put('a', 'x');
    caches.put('b', 'x');
    await caches.clock.advance(100);
    seen.length = 0;
    handlers[0]?.('updated', 'k', 'a', 'b');
    await caches.clock.advance(10);
    expect(seen.toSorted()).toEqual(['a', 'b']);
  });

  it('finishes work in progress when it is stopped, and does not start new work', async () => {
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const caches = startKind({
      reconcile: async object => {
        seen.push(object.metadata.name);
        await gate.promise;
        return { conditions: [READY] };
      },
    });
    caches.put('a', 'x');
    caches.put('b', 'x');
    await caches.clock.advance(10);
    caches.stop.abort();
    await caches.clock.advance(10);
    gate.resolve();
    await caches.running;
    expect(seen).toEqual(['a']);
    expect(caches.writes).toEqual(['status ns/a']);
    caches.controller.enqueue('ns/b');
    await caches.clock.advance(1_000);
    expect(seen).toEqual(['a']);
  });
});
