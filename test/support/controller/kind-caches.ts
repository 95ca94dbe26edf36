import { createControllerMetrics } from '../../../src/controller/engine/controller-metrics.ts';
import { createKindController, type KindControllerOptions } from '../../../src/controller/engine/kind-controller.ts';
import type { CommonStatus } from '../../../src/controller/engine/status-writer.ts';
import { finish } from '../../../src/core/routing/steps.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { errorFromStatus } from '../../../src/kube/kube-error.ts';
import { type KubeObject, keyOf } from '../../../src/kube/object.ts';
import { createReflected } from '../../../src/kube/reflected.ts';
import type { Resource } from '../../../src/kube/resource.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createRegistry } from '../../../src/telemetry/metrics.ts';
import { createManualClock } from '../manual-clock.ts';

const THINGS: Resource = { group: 'x', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true };
const log = createLogger({ level: 'silent' });
type Status = CommonStatus & { readonly result?: string };
export type Thing = KubeObject<{ readonly say: string }, Status>;

export const READY = { type: 'Ready', status: 'True', reason: 'Done', message: 'done' } as const;

/** Simulates the API server for one kind: applies and patches, and watch events to the caches. */
function createThingServer() {
  const reflected = createReflected<Thing>({ project: object => object as Thing, log });
  const truth = new Map<string, Thing>();
  const writes: string[] = [];
  let version = 0;
  let lagging = false;

  function store(object: Thing): Thing {
    version++;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: `${version}` } };
    const key = keyOf(stored.metadata);
    const gone = stored.metadata.deletionTimestamp !== undefined && (stored.metadata.finalizers ?? []).length === 0;
    if (gone) truth.delete(key);
    else truth.set(key, stored);
    if (!lagging) reflected.apply({ type: gone ? 'DELETED' : 'MODIFIED', object: stored });
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
        throw errorFromStatus('PATCH', 409, { kind: 'Status', reason: 'Conflict' });
      }
      writes.push(`finalizers ${keyOf(name)} ${patch.metadata.finalizers?.length}`);
      return store({ ...before, metadata: { ...before.metadata, ...patch.metadata } });
    },
  } as unknown as Pick<KubeClient, 'apply' | 'mergePatch'>;

  return {
    reflected,
    client,
    /** The state observed and changed by the tests. */
    server: {
      writes,
      lag: (behind: boolean) => {
        lagging = behind;
      },
      /** Updates the caches immediately, like a list so that they only contain the final state of each object. */
      relist: () => {
        finish(reflected.replace([...truth.values()].map(reflected.project), `${version}`));
      },
      get: (name: string) => truth.get(`ns/${name}`),
      condition: (name: string, type: string) =>
        truth.get(`ns/${name}`)?.status?.conditions?.find(condition => condition.type === type),
      /** Copies an object with the same state from another world. */
      adopt: store,
      put: (name: string, say: string, meta: Partial<Thing['metadata']> = {}) => {
        const before = truth.get(`ns/${name}`);
        const generation = (before?.metadata.generation ?? 0) + 1;
        const base = before?.metadata ?? { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: '0' };
        return store({ ...before, metadata: { ...base, ...meta, generation }, spec: { say } });
      },
    },
  };
}

/** Runs a controller of one kind on a simulated API server. */
export function startKind(
  context: Partial<KindControllerOptions<Thing>> & Pick<KindControllerOptions<Thing>, 'reconcile'>,
) {
  const clock = createManualClock();
  const registry = createRegistry();
  const events: string[] = [];
  const { reflected, client, server } = createThingServer();
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
    ...context,
  });
  const stop = new AbortController();
  const lost = new AbortController();
  const running = controller.run(stop.signal, lost.signal);
  return { ...server, clock, controller, events, stop, lost, running, metrics: () => registry.metrics() };
}
