import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { ObjectOf } from '../../api/kinds/kinds.ts';
import { FIELD_MANAGER, FINALIZER } from '../../api/well-known.ts';
import { connect } from '../../kube/client.ts';
import { createLeaseStore } from '../../kube/lease.ts';
import type { AnyObject } from '../../kube/object.ts';
import { createReflector } from '../../kube/reflector.ts';
import { EVENTS, LEASES, NAMESPACES, resourceOf } from '../../kube/resource.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { systemClock } from '../../time/clock.ts';
import { createControllerMetrics } from './controller-metrics.ts';
import { createElector } from './elector.ts';
import { createEventRecorder } from './event-recorder.ts';
import { createKindController } from './kind-controller.ts';
import { createRuntime, type Runtime } from './runtime.ts';

type Package = ObjectOf<'Package'>;

const PACKAGES = resourceOf('Package');
const namespace = `runtime-${Date.now()}`;
const log = createLogger({ level: 'silent' });
const client = connect({ kubeconfig: inject('kubeconfig') });
const running: Promise<void>[] = [];
const stops: AbortController[] = [];

async function until<T>(look: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error('the condition was not true within 20 s');
    await delay(20);
  }
}

/** A replica of a package controller. Counts its operations. */
function startReplica(identity: string) {
  const seen = { reconciled: 0, writes: 0, finalized: 0 };
  const reflector = createReflector({
    client,
    resource: PACKAGES,
    namespace,
    project: (x: Package) => x,
    clock: systemClock,
    log,
  });
  const counting = {
    apply: ((...parameters: Parameters<typeof client.apply>) => {
      seen.writes++;
      return client.apply(...parameters);
    }) as typeof client.apply,
    mergePatch: client.mergePatch,
  };
  const events = createEventRecorder({
    client,
    clock: systemClock,
    log,
    metrics: { dropped: () => {} },
    component: 'test',
    instance: identity,
  });
  const controller = createKindController<Package>({
    name: 'packages',
    reflector,
    client: counting,
    events,
    clock: systemClock,
    log,
    metrics: createControllerMetrics(createRegistry())('packages'),
    workers: 2,
    reconcile: async object => {
      seen.reconciled++;
      if (object.spec.displayName === 'broken') throw new Error('broken');
      const ready = { type: 'Ready', status: 'True', reason: 'Compiled', message: 'compiled' } as const;
      return {
        status: { streamCount: object.spec.streams?.length ?? 0 },
        conditions: [ready],
        events: [{ type: 'Normal', reason: 'Compiled', message: 'compiled' }],
      };
    },
    finalize: async () => {
      seen.finalized++;
      return 'done';
    },
  });
  const elector = createElector({
    leases: createLeaseStore(client, { namespace, name: 'controller' }),
    identity,
    retryPeriodMs: 200,
    clock: systemClock,
    log,
  });
  const runtime: Runtime = createRuntime({
    reflectors: [reflector],
    controllers: [controller],
    elector,
    finish: events.flush,
    clock: systemClock,
    log,
  });
  const stop = new AbortController();
  stops.push(stop);
  const end = runtime.run(stop.signal);
  running.push(end);
  return { seen, elector, runtime, controller, stop: () => (stop.abort(), end) };
}

const apply = (name: string, spec: object, fieldManager = 'kubectl') =>
  client.apply<Package>(PACKAGES, { namespace, name }, { spec }, { fieldManager });
const get = (name: string) => client.get<Package>(PACKAGES, { namespace, name });
const readyPackage = (name: string) =>
  until(async () => {
    const object = await get(name);
    const ready = object?.status?.conditions?.find(({ type }) => type === 'Ready');
    return ready?.status === 'True' && ready.observedGeneration === object?.metadata.generation && object;
  });

let first: ReturnType<typeof startReplica>;

beforeAll(async () => {
  await client.create(NAMESPACES, { name: namespace }, {});
  first = startReplica('first');
  await until(() => first.elector.isLeader());
});

afterAll(async () => {
  for (const stop of stops) stop.abort();
  await Promise.all(running);
  await client.remove(NAMESPACES, { name: namespace });
  await client.close();
});

describe('runtime with a real API server', () => {
  it('adds the finalizer and writes the status using its own field manager', async () => {
    await apply('gold', { streams: ['orders'] });
    const object = await readyPackage('gold');
    expect(object.metadata.finalizers).toEqual([FINALIZER]);
    expect(object.status).toMatchObject({ streamCount: 1, observedGeneration: 1 });
    const { managedFields } = object.metadata as unknown as {
      managedFields: { manager: string; operation: string; subresource?: string }[];
    };
    expect(managedFields).toContainEqual(
      expect.objectContaining({ manager: FIELD_MANAGER.controller, operation: 'Apply', subresource: 'status' }),
    );
  });

  it('writes nothing after everything was applied', async () => {
    await apply('quiet', { streams: [] });
    await readyPackage('quiet');
    const before = await until(async () => {
      const { reconciled } = first.seen;
      await delay(200);
      return reconciled === first.seen.reconciled && get('quiet');
    });
    const { reconciled, writes } = first.seen;
    for (let i = 0; i < 10; i++) {
      first.controller.enqueue(`${namespace}/quiet`);
      await until(() => first.seen.reconciled > reconciled + i);
    }
    expect(first.seen.writes).toBe(writes);
    expect((await get('quiet'))?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });

  it('records an Event once', async () => {
    const { items } = await until(async () => {
      const events = await client.list(EVENTS, (event: AnyObject & { involvedObject: { name: string } }) => event, {
        namespace,
        fieldSelector: 'involvedObject.name=quiet,reason=Compiled',
      });
      return events.items.length > 0 && events;
    });
    expect(items).toHaveLength(1);
  });

  it('repairs a status that was changed by another client', async () => {
    await apply('mended', { streams: [] });
    await readyPackage('mended');
    const status = { streamCount: 99 };
    await client.mergePatch(PACKAGES, { namespace, name: 'mended' }, { status }, { subresource: 'status' });
    await until(async () => (await get('mended'))?.status?.streamCount === 0);
  });

  it('reports a failure and recovers', async () => {
    await apply('fragile', { streams: [], displayName: 'broken' });
    const failed = await until(async () => {
      const object = await get('fragile');
      return object?.status?.conditions?.some(({ reason }) => reason === 'Retrying') && object;
    });
    expect(failed.status?.conditions).toMatchObject([
      { type: 'Ready', status: 'False', reason: 'ReconcileFailed' },
      {},
    ]);
    await apply('fragile', { streams: [], displayName: 'whole' });
    const mended = await readyPackage('fragile');
    expect(mended.status?.conditions).toHaveLength(1);
  });

  it('finalizes deleted objects', async () => {
    await apply('doomed', { streams: [] });
    await readyPackage('doomed');
    const { finalized } = first.seen;
    await client.remove(PACKAGES, { namespace, name: 'doomed' });
    await until(async () => (await get('doomed')) === undefined);
    expect(first.seen.finalized).toBe(finalized + 1);
  });

  it('hands over to another replica immediately, which finds everything applied', async () => {
    const second = startReplica('second');
    await until(() => second.runtime.readiness().ready);
    // The caches may be synced before the first attempt to acquire the Lease.
    await until(() => second.elector.holder() !== undefined);
    expect(second.elector.isLeader()).toBe(false);
    await first.stop();
    await until(() => second.elector.isLeader());
    await until(() => second.seen.reconciled >= 4);
    expect(second.seen.writes).toBe(0);
    const lease = await client.get<AnyObject & { spec: { leaseTransitions: number } }>(LEASES, {
      namespace,
      name: 'controller',
    });
    expect(lease?.spec.leaseTransitions).toBe(1);
    await apply('after', { streams: [] });
    await readyPackage('after');
  });
});
