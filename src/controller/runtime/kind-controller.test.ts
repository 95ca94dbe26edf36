import { afterEach, describe, expect, it } from 'vitest';
import { FINALIZER } from '../../api/well-known.ts';
import type { KubeClient } from '../../kube/client.ts';
import { errorFromStatus } from '../../kube/kube-error.ts';
import { createManualClock } from '../../kube/manual-clock.ts';
import { type KubeObject, keyOf } from '../../kube/object.ts';
import { type ChangeHandler, createReflected } from '../../kube/reflected.ts';
import type { Resource } from '../../kube/resource.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { createControllerMetrics } from './controller-metrics.ts';
import { keysFrom } from './keyed-controller.ts';
import { createKindController, type KindControllerOptions } from './kind-controller.ts';
import { TerminalError, waiting } from './outcome.ts';
import type { CommonStatus } from './status-writer.ts';

const THINGS: Resource = { group: 'x', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true };
const log = createLogger({ level: 'silent' });
type Status = CommonStatus & { readonly said?: string };
type Thing = KubeObject<{ readonly say: string }, Status>;

const READY = { type: 'Ready', status: 'True', reason: 'Done', message: 'done' } as const;
const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

/** The API server's side of one kind: applies, patches, and tells the caches; and the controller under test. */
function start(room: Partial<KindControllerOptions<Thing>> & Pick<KindControllerOptions<Thing>, 'reconcile'>) {
  const clock = createManualClock();
  const registry = createRegistry();
  const writes: string[] = [];
  const events: string[] = [];
  const reflected = createReflected<Thing>({ project: object => object as Thing, log });
  const truth = new Map<string, Thing>();
  let version = 0;
  let lagging = false;

  const tell = (type: 'MODIFIED' | 'DELETED', object: Thing) => {
    if (!lagging) reflected.apply({ type, object });
  };
  function store(object: Thing): Thing {
    version++;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: `${version}` } };
    const key = keyOf(stored.metadata);
    const gone = stored.metadata.deletionTimestamp !== undefined && (stored.metadata.finalizers ?? []).length === 0;
    if (gone) truth.delete(key);
    else truth.set(key, stored);
    tell(gone ? 'DELETED' : 'MODIFIED', stored);
    return stored;
  }
  const client = {
    apply: async (_resource: Resource, name: { namespace?: string; name: string }, body: { status: Status }) => {
      const before = truth.get(keyOf(name));
      if (before === undefined) throw errorFromStatus('PATCH', 404, undefined);
      writes.push(`status ${keyOf(name)}`);
      return store({ ...before, status: body.status });
    },
    mergePatch: async (_r: Resource, name: { name: string }, patch: { metadata: Thing['metadata'] }) => {
      const before = truth.get(keyOf(name));
      if (before === undefined) throw errorFromStatus('PATCH', 404, undefined);
      if (before.metadata.resourceVersion !== patch.metadata.resourceVersion) {
        throw errorFromStatus('PATCH', 409, undefined);
      }
      writes.push(`finalizers ${keyOf(name)} ${patch.metadata.finalizers?.length}`);
      return store({ ...before, metadata: { ...before.metadata, ...patch.metadata } });
    },
  } as unknown as Pick<KubeClient, 'apply' | 'mergePatch'>;

  const controller = createKindController<Thing>({
    name: 'things',
    reflector: {
      ...reflected,
      resource: THINGS,
      run: async () => {},
      hasSynced: () => true,
      synced: Promise.resolve(),
      lastHeardMs: () => 0,
      relist: async () => {},
    },
    client,
    events: { record: (object, note) => events.push(`${object.metadata.name} ${note.reason}`) },
    clock,
    log,
    metrics: createControllerMetrics(registry)('things'),
    ...room,
  });
  const stop = new AbortController();
  const lost = new AbortController();
  stops.push(stop);
  const running = controller.run(stop.signal, lost.signal);

  return {
    clock,
    controller,
    writes,
    events,
    stop,
    lost,
    running,
    metrics: () => registry.metrics(),
    lag: (behind: boolean) => {
      lagging = behind;
    },
    get: (name: string) => truth.get(`ns/${name}`),
    condition: (name: string, type: string) =>
      truth.get(`ns/${name}`)?.status?.conditions?.find(condition => condition.type === type),
    put: (name: string, say: string, meta: Partial<Thing['metadata']> = {}) => {
      const before = truth.get(`ns/${name}`);
      const generation = (before?.metadata.generation ?? 0) + 1;
      const base = before?.metadata ?? { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: '0' };
      return store({ ...before, metadata: { ...base, ...meta, generation }, spec: { say } });
    },
  };
}

describe('kind controller', () => {
  it('writes the status once, and nothing when nothing differs', async () => {
    let reconciled = 0;
    const world = start({
      reconcile: async object => {
        reconciled++;
        return { status: { said: object.spec.say }, conditions: [READY] };
      },
    });
    world.put('a', 'hello');
    await world.clock.advance(10);
    expect(world.writes).toEqual(['status ns/a']);
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
    const world = start({ reconcile: async () => ({ conditions: [READY] }) });
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
    const world = start({ reconcile: async object => ({ status: { said: object.spec.say }, conditions: [READY] }) });
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
    const world = start({
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

  it('has nothing to do with a deleted object that it has no finalizer on', async () => {
    let calls = 0;
    const count = async () => {
      calls++;
      return { conditions: [READY] };
    };
    const world = start({ reconcile: count });
    world.put('a', 'x', { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['other/one'] });
    await world.clock.advance(10);
    expect(calls).toBe(0);
    expect(world.writes).toEqual([]);
  });

  it('waits as a value, without counting an error', async () => {
    const world = start({ reconcile: async () => waiting('WaitingForStream', 'no stream yet') });
    world.put('a', 'x');
    await world.clock.advance(10);
    expect(world.condition('a', 'Ready')).toMatchObject({ status: 'Unknown', reason: 'WaitingForStream' });
    expect(world.condition('a', 'Reconciling')).toMatchObject({ status: 'True' });
    expect(await world.metrics()).toContain('controller_runtime_reconcile_errors_total{controller="things"} 0');
  });

  it('retries a failure, says so, and takes it back', async () => {
    let broken = true;
    const world = start({
      reconcile: async () => {
        if (broken) throw new Error('internal');
        return { conditions: [READY] };
      },
    });
    world.put('a', 'x');
    await world.clock.advance(100);
    expect(world.condition('a', 'Ready')).toMatchObject({ status: 'False', reason: 'ReconcileFailed' });
    expect(world.condition('a', 'Reconciling')).toMatchObject({ reason: 'Retrying' });
    expect(world.writes).toHaveLength(1);
    expect(world.events).toEqual(['a ReconcileFailed']);
    broken = false;
    await world.clock.advance(10_000);
    expect(world.condition('a', 'Ready')).toMatchObject({ status: 'True' });
    expect(world.condition('a', 'Reconciling')).toBeUndefined();
    const text = await world.metrics();
    expect(text).toMatch(/controller_runtime_reconcile_total\{controller="things",result="error"\} [1-9]/);
    expect(text).toMatch(/controller_runtime_reconcile_errors_total\{controller="things"\} [1-9]/);
    expect(text).toContain('controller_runtime_max_concurrent_reconciles{controller="things"} 1');
    expect(text).toContain('controller_runtime_active_workers{controller="things"} 0');
  });

  it('keeps a Ready object’s status through a short outage', async () => {
    let broken = false;
    const world = start({
      reconcile: async () => {
        if (broken) throw new Error('Redis is away');
        return { conditions: [READY] };
      },
    });
    world.put('a', 'x');
    await world.clock.advance(10);
    broken = true;
    world.controller.enqueue('ns/a');
    await world.clock.advance(300);
    broken = false;
    await world.clock.advance(10_000);
    expect(world.writes).toHaveLength(1);
  });

  it('stalls on a terminal error until the object changes', async () => {
    let calls = 0;
    const world = start({
      reconcile: async object => {
        calls++;
        if (object.spec.say === 'bad') throw new TerminalError('InvalidObject', 'say something else');
        return { conditions: [READY] };
      },
    });
    world.put('a', 'bad');
    await world.clock.advance(3_600_000);
    expect(world.condition('a', 'Stalled')).toMatchObject({ status: 'True', reason: 'InvalidObject' });
    expect(calls).toBeLessThanOrEqual(2);
    world.put('a', 'good');
    await world.clock.advance(10);
    expect(world.condition('a', 'Stalled')).toBeUndefined();
    expect(world.condition('a', 'Ready')).toMatchObject({ status: 'True', observedGeneration: 2 });
  });

  it('records Events only with a change of the status', async () => {
    const note = { type: 'Normal', reason: 'Made', message: 'made' } as const;
    const world = start({ reconcile: async () => ({ conditions: [READY], events: [note] }) });
    world.put('a', 'x');
    await world.clock.advance(10);
    world.controller.enqueue('ns/a');
    await world.clock.advance(10);
    expect(world.events).toEqual(['a Made']);
  });

  it('comes back when it was asked to', async () => {
    let calls = 0;
    const world = start({
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

  it('treats a conflict as a cache that lags, not as an error', async () => {
    let conflicts = 1;
    const world = start({
      reconcile: async () => {
        if (conflicts-- > 0) throw errorFromStatus('PATCH', 409, undefined);
        return { conditions: [READY] };
      },
    });
    world.put('a', 'x');
    await world.clock.advance(100);
    expect(world.condition('a', 'Ready')).toMatchObject({ status: 'True' });
    const text = await world.metrics();
    expect(text).toContain('controller_runtime_reconcile_errors_total{controller="things"} 0');
    expect(text).toContain('controller_runtime_reconcile_total{controller="things",result="requeue"} 1');
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
    const world = start({
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
    const world = start({
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

  it('writes no failure after the lease was lost', async () => {
    const gate = Promise.withResolvers<void>();
    const world = start({
      reconcile: async (_object, { signal }) => {
        await gate.promise;
        signal.throwIfAborted();
        return { conditions: [READY] };
      },
    });
    world.put('a', 'x');
    await world.clock.advance(10);
    world.lost.abort(new Error('the lease is lost'));
    world.stop.abort();
    gate.resolve();
    await world.running;
    expect(world.writes).toEqual([]);
  });
});
