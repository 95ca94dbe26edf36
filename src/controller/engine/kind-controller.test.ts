import { describe, expect, it } from 'vitest';
import { READY, startKind } from '../../../test/support/controller/kind-world.ts';
import { FINALIZER } from '../../api/well-known.ts';
import type { ChangeHandler } from '../../kube/reflected.ts';
import { keysFrom } from './keyed-controller.ts';

describe('kind controller', () => {
  it('writes the status once, and nothing when nothing differs', async () => {
    let reconciled = 0;
    const world = startKind({
      reconcile: async object => {
        reconciled++;
        return { status: { said: object.spec.say }, conditions: [READY] };
      },
    });
    world.put('a', 'hello');
    await world.clock.advance(10);
    expect(world.writes).toEqual(['status ns/a']);
    // The watch brings a status before the answer to its write: that is no news.
    expect(reconciled).toBe(1);
    expect(world.get('a')?.status).toMatchObject({ said: 'hello', observedGeneration: 1 });
    expect(world.condition('a', 'Ready')).toMatchObject({ status: 'True', observedGeneration: 1 });
    for (let i = 0; i < 5; i++) {
      world.controller.enqueue('ns/a');
      await world.clock.advance(1_000);
    }
    expect(reconciled).toBeGreaterThan(5);
    expect(world.writes).toHaveLength(1);
  });

  it('writes once though its cache lags behind', async () => {
    const world = startKind({ reconcile: async () => ({ conditions: [READY] }) });
    const object = world.put('a', 'hello');
    world.lag(true);
    await world.clock.advance(10);
    for (let i = 0; i < 3; i++) {
      world.controller.enqueue('ns/a');
      await world.clock.advance(10);
    }
    expect(world.writes).toHaveLength(1);
    expect(object.status).toBeUndefined();
  });

  it('mends a status that another has changed', async () => {
    const world = startKind({
      reconcile: async object => ({ status: { said: object.spec.say }, conditions: [READY] }),
    });
    world.put('a', 'hello');
    await world.clock.advance(10);
    world.lag(false);
    world.put('a', 'hello', {});
    await world.clock.advance(10);
    expect(world.get('a')?.status?.observedGeneration).toBe(2);
    expect(world.writes).toHaveLength(2);
  });

  it('puts the finalizer on before the first effect and takes it off after the last', async () => {
    const effects: (string | undefined)[] = [];
    let undone = 0;
    const world = startKind({
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
    world.put('a', 'x', { finalizers: ['other/one'] });
    await world.clock.advance(10);
    expect(world.writes[0]).toBe('finalizers ns/a 2');
    world.put('a', 'x', { deletionTimestamp: '2026-01-01T00:00:00Z' });
    await world.clock.advance(10);
    expect(world.condition('a', 'Ready')).toMatchObject({ status: 'False', reason: 'Draining' });
    await world.clock.advance(1_000);
    expect(new Set(effects)).toEqual(new Set([`other/one,${FINALIZER}`]));
    expect(undone).toBe(2);
    expect(world.get('a')?.metadata.finalizers).toEqual(['other/one']);
  });

  it('lets an object go once, also when it is called again before the cache knows that it is gone', async () => {
    let effects = 0;
    const world = startKind({
      reconcile: async () => ({ conditions: [READY] }),
      finalize: async () => {
        effects++;
        world.lag(true);
        // Something it depends on changes meanwhile.
        if (effects === 1) world.controller.enqueue('ns/a');
        return 'done';
      },
    });
    world.put('a', 'x');
    await world.clock.advance(10);
    world.put('a', 'x', { ...world.get('a')?.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' });
    await world.clock.advance(1_000);
    expect(world.get('a')).toBeUndefined();
    expect(effects).toBe(1);
    // One of the same name has its own turn.
    world.lag(false);
    world.relist();
    world.put('a', 'y', { uid: 'another', finalizers: [], deletionTimestamp: undefined });
    await world.clock.advance(10);
    world.put('a', 'y', { ...world.get('a')?.metadata, deletionTimestamp: '2026-01-01T00:00:01Z' });
    await world.clock.advance(1_000);
    expect(effects).toBe(2);
  });

  it('has nothing to do with a deleted object that it has no finalizer on', async () => {
    let calls = 0;
    const count = async () => {
      calls++;
      return { conditions: [READY] };
    };
    const world = startKind({ reconcile: count });
    world.put('a', 'x', { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['other/one'] });
    await world.clock.advance(10);
    expect(calls).toBe(0);
    expect(world.writes).toEqual([]);
  });

  it('records Events only with a change of the status', async () => {
    const note = { type: 'Normal', reason: 'Made', message: 'made' } as const;
    const world = startKind({ reconcile: async () => ({ conditions: [READY], events: [note] }) });
    world.put('a', 'x');
    await world.clock.advance(10);
    world.controller.enqueue('ns/a');
    await world.clock.advance(10);
    expect(world.events).toEqual(['a Made']);
  });

  it('sees what was changed before its own write, when a list brings both at once', async () => {
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const world = startKind({
      reconcile: async ({ spec }) => {
        seen.push(spec.say);
        await gate.promise;
        return { conditions: [READY] };
      },
    });
    world.put('a', 'before');
    await world.clock.advance(10);
    world.lag(true);
    world.put('a', 'after');
    gate.resolve();
    await world.clock.advance(10);
    expect(world.writes).toEqual(['status ns/a']);
    world.lag(false);
    world.relist();
    await world.clock.advance(10);
    expect(seen.at(-1)).toBe('after');
    expect(world.condition('a', 'Ready')).toMatchObject({ observedGeneration: 2 });
  });

  it('comes back when it was asked to', async () => {
    let calls = 0;
    const world = startKind({
      reconcile: async () => {
        calls++;
        return { conditions: [READY], requeueAfterMs: 60_000 };
      },
    });
    world.put('a', 'x');
    await world.clock.advance(10);
    const before = calls;
    await world.clock.advance(59_000);
    expect(calls).toBe(before);
    await world.clock.advance(1_100);
    expect(calls).toBe(before + 1);
  });

  it('follows what it depends on', async () => {
    const handlers: ChangeHandler<string>[] = [];
    const other = {
      subscribe: (handler: ChangeHandler<string>) => {
        handlers.push(handler);
        return () => {};
      },
      store: { values: () => ['a'] },
    } as unknown as Parameters<typeof keysFrom<string>>[0];
    const seen: string[] = [];
    const world = startKind({
      reconcile: async object => {
        seen.push(object.metadata.name);
        return { conditions: [READY] };
      },
      sources: [keysFrom(other, (old, current) => [old, current].flatMap(name => (name ? [`ns/${name}`] : [])))],
    });
    world.put('a', 'x');
    world.put('b', 'x');
    await world.clock.advance(100);
    seen.length = 0;
    handlers[0]?.('updated', 'k', 'a', 'b');
    await world.clock.advance(10);
    expect(seen.toSorted()).toEqual(['a', 'b']);
  });

  it('finishes what is under way when it stops, and begins nothing', async () => {
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const world = startKind({
      reconcile: async object => {
        seen.push(object.metadata.name);
        await gate.promise;
        return { conditions: [READY] };
      },
    });
    world.put('a', 'x');
    world.put('b', 'x');
    await world.clock.advance(10);
    world.stop.abort();
    await world.clock.advance(10);
    gate.resolve();
    await world.running;
    expect(seen).toEqual(['a']);
    expect(world.writes).toEqual(['status ns/a']);
    world.controller.enqueue('ns/b');
    await world.clock.advance(1_000);
    expect(seen).toEqual(['a']);
  });
});
