import { randomUUID } from 'node:crypto';
import { type AuditedTenant, createAuditedTenant, NOW_MS } from '../../../test/support/controller/audited-tenant.ts';
import { sealEndpoint } from '../../core/delivery/endpoint-config.ts';
import { deriveSealKeys } from '../../core/delivery/seal.ts';
import { tenantId } from '../../core/ids/ids.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { RedisClient } from '../../redis/client.ts';
import { createHintIndex } from '../../redis/hints.ts';
import { createInboxStore } from '../../redis/inbox-store.ts';
import { createIngressOperations, type IngressQueue } from '../../redis/ingress-store.ts';
import { hintPartition, inboxKeys, integrationKeys, queueKeys } from '../../redis/keys.ts';
import { createLedgerStore } from '../../redis/ledger-store.ts';
import { createQueueStore } from '../../redis/queue-store.ts';
import { event } from '../../redis/testing/tenant.ts';
import { createTrafficStore } from '../../redis/traffic-store.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { createDispatcher } from '../dispatcher/dispatcher.ts';
import { createRouter } from '../router/router.ts';
import { type Aside, type Fate, interleave, type Service, type Step } from './interleaving.ts';
import { createProcessClient, createWire, type Witness } from './process-client.ts';

const QUEUE = 'orders';
const ROOT_KEY = Buffer.alloc(32, 7);
const SEAL_KEYS = deriveSealKeys(ROOT_KEY);
const log = createLogger({ level: 'silent' });
const direct: Step = (_label, call) => call();
/** Calls of the controller that others may see. */
const CONTROL_WRITES = new Set(['act', 'patch', 'lower']);

export interface ProcessOptions {
  /** Scripts that are steps of it. */
  readonly steps?: readonly string[];
  readonly faults?: readonly Fate[];
  /** Hears messages when this service says so; at once without. */
  readonly ear?: Ear;
}

export type Ear = Service & { readonly hear: (deliver: () => void) => void };

/** Hears the messages of one process, each as a step of its own. */
export function createEar(name: string, faults: readonly Fate[] = []): Ear {
  let step = direct;
  return {
    name,
    faults,
    serve: own => {
      step = own;
      return () => {};
    },
    // A message that was not done is lost.
    hear: deliver => void step('hears', async () => deliver()).catch(() => {}),
  };
}

/**
 * One tenant with everything that works for it: controller, router and dispatchers, as they are composed in their roles,
 * on one Redis and one clock that only the test moves. An event's body is its group key and a number.
 */
export async function createProcesses(redis: RedisClient, { unordered = false } = {}) {
  // Whole: tens of thousands of worlds share a Redis, and 32 bits collide in one run of twenty.
  const unique = randomUUID();
  const name = `t${unique}`;
  const tenant = tenantId(name);
  const partition = hintPartition(`${tenant}:${QUEUE}`);
  const clock = { ms: NOW_MS };
  const nowMs = (): number => clock.ms;
  const wire = createWire();
  const witnesses: Witness[] = [];
  const witness: Witness = (...call) => witnesses.forEach(each => each(...call));
  const clientOf = (steps: ReadonlySet<string>, step: Step, aside?: Aside, hear?: Ear['hear']): RedisClient =>
    createProcessClient({
      redis,
      unique,
      wire,
      partition,
      steps,
      step,
      witness,
      ...(aside === undefined ? {} : { aside }),
      ...(hear === undefined ? {} : { hear }),
    });

  /** What the API server holds: every leader's caches are filled from it. */
  const objects = new Map<string, readonly [Parameters<AuditedTenant['put']>[0], AnyObject]>();
  let epoch = 0;

  async function createController() {
    const turn = { step: direct };
    const t = await createAuditedTenant(
      clientOf(CONTROL_WRITES, (label, call) => turn.step(label, call)),
      { name, clusterIsOwn: true, sealEndpoint: (sub, config) => sealEndpoint(SEAL_KEYS, sub, config) },
    );
    t.fence.epoch = ++epoch;
    (t.caches.namespaces.store as never as Map<string, unknown>).set(name, { workspace: name, deleting: false });
    for (const [kind, object] of objects.values()) t.put(kind, object);
    const save = (kind: Parameters<AuditedTenant['put']>[0], object: AnyObject): void => {
      objects.set(`${kind}/${object.metadata.namespace}/${object.metadata.name}`, [kind, object]);
      t.put(kind, object);
    };
    const reconcile = (groupKey: string, failures = 0) => t.reconcilePair(`${name}/ada/${groupKey}`, failures);
    return { ...t, turn, save, reconcile };
  }

  const first = await createController();
  const { account, workspace, stream, integration, subscription } = first.objects;
  first.save('Account', account);
  first.save('Workspace', workspace);
  first.save('CatalogStream', stream);
  first.save('Integration', integration);
  const ordering = unordered ? 'None' : 'ByGroupKey';
  first.save('Subscription', { ...subscription, spec: { ...subscription.spec, ordering } } as AnyObject);
  for (const groupKey of ['k', 'o']) first.save('Activation', first.activation(groupKey));
  first.queue.accounts.add(name);
  first.queue.tenants.add(name);
  await first.work();

  const own = clientOf(new Set(), direct);
  const inboxes = createInboxStore(own);
  const ingress = createIngressOperations(own, nowMs, () => {});
  const config = (await ingress.readQueue(tenant, QUEUE)) as IngressQueue;
  const inc = (await own.readHash(integrationKeys(first.integration).sub(first.sub))).inc as string;
  const x = inboxKeys(first.integration, first.sub, inc);
  const accepted: string[] = [];
  const sent: { readonly body: string; readonly atMs: number }[] = [];
  const failing = new Set<string>();

  async function accept(...bodies: readonly string[]): Promise<void> {
    const events = bodies.map(body => event(randomUUID(), body.slice(0, 1), body));
    await ingress.ingest(tenant, QUEUE, config, events);
    accepted.push(...bodies);
    await createHintIndex(own, 'r').lower([{ member: `${tenant}:${QUEUE}`, dueMs: clock.ms }]);
  }

  function router({ steps = [], faults = [] }: ProcessOptions = {}): Service {
    return {
      name: 'router',
      faults,
      serve: (step, aside) => {
        const client = clientOf(new Set(steps), step, aside);
        const role = createRouter({
          queues: createQueueStore(client),
          inboxes: createInboxStore(client),
          ledger: createLedgerStore(client),
          traffic: createTrafficStore(client),
          queueHints: createHintIndex(client, 'r'),
          inboxHints: createHintIndex(client, 'd'),
          alarm: () => {},
          nowMs,
          log,
          registry: createRegistry(),
        });
        role.start();
        return () => void role.stop();
      },
    };
  }

  function dispatcher(called = 'dispatcher', { steps = [], faults = [], ear }: ProcessOptions = {}): Service {
    return {
      name: called,
      faults,
      serve: (step, aside) => {
        const client = clientOf(new Set(steps), step, aside, ear?.hear);
        const role = createDispatcher({
          inboxes: createInboxStore(client),
          hints: createHintIndex(client, 'd'),
          traffic: createTrafficStore(client),
          client: {
            attempt: async ({ body }: { readonly body: Uint8Array }) => {
              const text = Buffer.from(body).toString();
              sent.push({ body: text, atMs: clock.ms });
              const outcome = failing.delete(text) ? 'failed' : 'delivered';
              const status = outcome === 'failed' ? 500 : 204;
              return { outcome, reason: 'http', status, latencyMs: 1, responseBody: Buffer.alloc(0), truncated: false };
            },
          } as never,
          keys: { rootKey: ROOT_KEY, sealKeys: SEAL_KEYS },
          version: '0',
          alarm: () => {},
          nowMs,
          log,
          registry: createRegistry(),
        });
        role.start();
        return () => void role.stop();
      },
    };
  }

  return {
    name,
    unique,
    x,
    clock,
    witnesses,
    controller: first,
    createController,
    accept,
    accepted,
    sent,
    /** Bodies whose next attempt fails. */
    failing,
    router,
    dispatcher,
    /** Lets services do all that there is to do now. */
    settle: (...services: readonly Service[]) => interleave(services, ([option]) => option as never),
    /** Bodies of what was routed, in order. */
    async routed(): Promise<string[]> {
      const log = (await redis.call('xrange', x.log, '-', '+')) as [string][];
      const ids = log.map(([id]) => id);
      const events = ids.length === 0 ? [] : await inboxes.readEvents(tenant, QUEUE, config.gen, ids);
      return events.map(each => String(each?.body));
    },
    /** Group keys of the open references. */
    async open(): Promise<string[]> {
      return ((await redis.call('zrange', x.pending, 0, -1)) as string[]).map(each => each.slice(0, 1));
    },
    /** Events that the cursor or a subscription has not come to yet. */
    async unrouted(): Promise<number> {
      const q = queueKeys(tenant, QUEUE, config.gen);
      const { cur = '0-0' } = await redis.readHash(q.meta);
      const ahead = (await redis.call('xrange', q.events, `(${cur}`, '+')) as unknown[];
      return ahead.length + Number(await redis.call('hlen', q.behind));
    },
  };
}

export type Processes = Awaited<ReturnType<typeof createProcesses>>;
