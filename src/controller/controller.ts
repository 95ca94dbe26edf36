import { hostname } from 'node:os';
import { createAlarmListener } from './alarm-listener.ts';
import { createAuditing } from './audit/auditing.ts';
import { createWorld } from './caches/caches.ts';
import { createSources } from './caches/watches.ts';
import { explainRedisFailure, type Room } from './context/context.ts';
import { createDataPlane } from './context/data-plane.ts';
import { createDeletionTimes } from './context/deletion-times.ts';
import { enqueueFollowers } from './context/followers.ts';
import { createLetGoTeller } from './context/let-go.ts';
import { finalizeUnlessPaused, isPaused, PAUSABLE, unlessPaused } from './context/paused.ts';
import type { ControllerOptions, ControllerRole } from './controller-options.ts';
import { createElection } from './election.ts';
import { createControllerMetrics } from './engine/controller-metrics.ts';
import { createEventRecorder } from './engine/event-recorder.ts';
import { createKeyedController } from './engine/keyed-controller.ts';
import { createKindController } from './engine/kind-controller.ts';
import { createRuntime } from './engine/runtime.ts';
import type { RetryPauses } from './engine/work-queue.ts';
import { reconcileAccount } from './kinds/account/reconcile.ts';
import { createShortages } from './kinds/account/shortages.ts';
import { createActivationControllers } from './kinds/activation/controllers.ts';
import { openGatesOf } from './kinds/activation/reconcile.ts';
import { reconcileBlock } from './kinds/block/reconcile.ts';
import { finalizeStream, reconcileStream } from './kinds/catalog-stream/reconcile.ts';
import { DELIVERY_RETRY, deliverInvitation } from './kinds/integration/deliver.ts';
import { createDeliveries } from './kinds/integration/deliveries.ts';
import { createInvitationMetrics } from './kinds/integration/invitation-metrics.ts';
import { isEnded, reconcileIntegration } from './kinds/integration/reconcile.ts';
import { finalizePackage, reconcilePackage } from './kinds/package/reconcile.ts';
import { createBacklogWatch } from './kinds/subscription/backlog-watch.ts';
import { createDeliveryShowing } from './kinds/subscription/delivery-status/delivery-showing.ts';
import { createEndpointHealths, keysConcerned } from './kinds/subscription/endpoint-healths.ts';
import { createHeaderSecrets } from './kinds/subscription/header-secrets.ts';
import { finalizeSubscription, reconcileSubscription } from './kinds/subscription/reconcile.ts';
import { shownReason } from './kinds/subscription/shown-reason.ts';
import { createIngressKeyWatch } from './kinds/workspace/ingress-key-watch.ts';
import { finalizeWorkspace, reconcileWorkspace } from './kinds/workspace/reconcile.ts';
import { createLeading } from './leadership.ts';
import { createSharedLocks } from './routes/shared-lock.ts';
import { gatherTenant, objectsOfTenant } from './routes/snapshot.ts';
import { createTenants } from './routes/tenants.ts';
import { registerObjectMetrics } from './state-metrics.ts';

/**
 * Pauses between tries of what failed. Short at most: what a Redis or an API server that was away held up is in force
 * within seconds of its return, and a deletion that waits for Redis is let go near its bound (`LET_GO_AFTER_MS`).
 */
const RETRY: RetryPauses = { firstMs: 5, mostMs: 5_000 };

/**
 * Workers of the kinds whose objects wait for the routes of their tenant: one compilation serves all that wait for it, so
 * that 10,000 subscriptions that come together take hundreds of them, not thousands.
 */
const WAITING = 32;

/** The controller role: caches, election, one controller a kind, and one for the routes of the tenants. */
export function createController(options: ControllerOptions): ControllerRole {
  const { client, control, clock, log, registry, nowMs, queueHints, inboxHints } = options;
  const world = createWorld(client, clock, log);
  const events = createEventRecorder({ client, clock, log, component: 'sluice-controller', instance: hostname() });
  const locks = createSharedLocks();
  const sources = createSources(world);
  const shortages = createShortages({
    registry,
    exists: account => world.Account.store.get(account) !== undefined,
    // The statuses of its workspaces follow, and those of the subscriptions to them through the routes.
    onNews: (account, turned) => {
      for (const name of sources.workspacesOf(account)) {
        workspaces.enqueue(name, 'background');
        if (turned) routes.enqueue(name, 'background');
      }
    },
  });

  const headerSecrets = createHeaderSecrets({
    world,
    client,
    enqueueAfter: (name, delayMs) => routes.enqueueAfter(name, delayMs),
    log,
  });
  const tenants = createTenants({
    control,
    queueHints,
    inboxHints,
    nowMs,
    compile: options.compile,
    fence: () => leading.fence(),
    explain: explainRedisFailure,
    prepare: headerSecrets.read,
    gather: name =>
      gatherTenant(
        world,
        uid => tenants.isRemoved(uid),
        name,
        account => shortages.isShort(account) === true,
        headerSecrets.fieldsOf,
      ),
    objectsOf: name => objectsOfTenant(world, name),
    isPaused: name => isPaused(world, name),
    openGates: name => openGatesOf({ world, nowMs }, name),
    exclusively: locks.exclusively,
    onChanged: (name, uids) => enqueueFollowers({ world, sources, followers }, name, uids),
  });
  const leading = createLeading({
    client,
    control,
    world,
    tenants,
    events,
    enqueueTenant: name => routes.enqueue(name, 'background'),
    enqueueAccount: name => accounts.enqueue(name, 'background'),
    nowMs,
    clock,
    log,
  });
  const backlogWatch = createBacklogWatch({
    store: options.backlogs,
    tenants: tenants.names,
    compiled: name => (tenants.isSynced(name) ? tenants.compiled(name) : undefined),
    subscriptionsOf: name => world.Subscription.store.byIndex('producer', name),
    onFlip: key => subscriptions.enqueue(key, 'background'),
    nowMs,
    clock,
    log,
  });
  registerObjectMetrics(registry, { world, backlogsAtRisk: backlogWatch.countAtRisk });
  const write = (key: string) => subscriptions.enqueue(key, 'background');
  const endpointHealths = createEndpointHealths({
    read: control.readHealth,
    onNews: (sub, first) => {
      for (const key of keysConcerned(world, sub, first)) write(key);
    },
    log,
  });
  const showing = createDeliveryShowing({ ...options, world, events, write });
  const auditPass = createAuditing({
    client,
    world,
    tenants,
    control,
    openAudit: options.openAudit,
    remains: options.remains,
    fence: () => leading.fence(),
    workers: () => ({ routes, activations, accounts }),
    noteHealths: (subs, texts) => endpointHealths.noteAll(subs, texts),
    noteDeliveries: showing.noteAll,
    onPass: () => {
      endpointHealths.prune(sub => world.Subscription.store.byIndex('publicId', sub).length > 0);
      showing.prune();
    },
    events,
    nowMs,
    clock,
    log,
    registry,
  });
  const deliveries = createDeliveries();
  const dataPlane = createDataPlane({ world, control, clock });
  const room: Room = {
    client,
    world,
    tenants,
    control,
    queueHints,
    inboxHints,
    shortages,
    nowMs,
    fence: () => leading.fence(),
    wallMs: clock.wallMs,
    ...createDeletionTimes(world, clock),
    dataPlane,
    rootKey: options.rootKey,
    isBacklogAtRisk: (tenant, uid) => backlogWatch.isAtRisk(tenant, uid),
    explain: explainRedisFailure,
    shared: locks.shared,
    tellLetGo: createLetGoTeller(events),
  };

  const metricsOf = createControllerMetrics(registry);
  const engine = (name: string, workers: number) => ({
    name,
    workers,
    client,
    events,
    clock,
    log,
    retry: RETRY,
    metrics: metricsOf(name),
    tracing: options.tracing,
  });
  const accounts = createKindController({
    ...engine('account', 1),
    reflector: world.Account,
    reconcile: reconcileAccount(room),
  });
  const workspaces = createKindController({
    ...engine('workspace', 4),
    reflector: world.Workspace,
    reconcile: unlessPaused(room, PAUSABLE.Workspace, reconcileWorkspace(room)),
    finalize: finalizeWorkspace(room),
    sources: [...sources.workspace, dataPlane.source],
  });
  const streams = createKindController({
    ...engine('catalogstream', WAITING),
    reflector: world.CatalogStream,
    reconcile: unlessPaused(room, PAUSABLE.CatalogStream, reconcileStream(room)),
    finalize: finalizeUnlessPaused(room, PAUSABLE.CatalogStream, finalizeStream(room)),
    sources: [sources.inWorkspace('CatalogStream')],
  });
  const packages = createKindController({
    ...engine('package', WAITING),
    reflector: world.Package,
    reconcile: unlessPaused(room, PAUSABLE.Package, reconcilePackage(room)),
    finalize: finalizePackage(room),
    sources: [sources.inWorkspace('Package'), ...sources.package],
  });
  const integrations = createKindController({
    ...engine('integration', WAITING),
    reflector: world.Integration,
    reconcile: unlessPaused(room, PAUSABLE.Integration, reconcileIntegration({ ...room, deliveries }), isEnded),
    sources: [sources.inWorkspace('Integration'), ...sources.integration],
  });
  const invitations = createKeyedController({
    ...engine('invitation', 2),
    retry: DELIVERY_RETRY,
    reconcile: deliverInvitation(room, {
      sendInvitation: options.sendInvitation,
      deliveries,
      tell: key => integrations.enqueue(key),
      metrics: createInvitationMetrics(registry),
    }),
    sources: sources.invitation,
  });
  const blocks = createKindController({
    ...engine('block', WAITING),
    reflector: world.Block,
    reconcile: reconcileBlock(room),
    sources: [sources.inWorkspace('Block'), ...sources.block],
  });
  const subscriptions = createKindController({
    ...engine('subscription', WAITING),
    reflector: world.Subscription,
    reconcile: showing.show(reconcileSubscription({ ...room, endpointHealths })),
    fieldsOf: shownReason,
    finalize: finalizeSubscription(room),
    sources: sources.subscription,
  });
  const { activations, revoked } = createActivationControllers(room, client, engine, sources);
  /** Changes of objects that nobody waits for, and deletions, come into force here. */
  const routes = createKeyedController({
    ...engine('routes', 4),
    reconcile: name => tenants.sync(name),
    sources: sources.routes,
  });

  const followers = { workspaces, streams, packages, integrations, blocks, subscriptions, activations };

  const enqueueAccount = (name: string) => accounts.enqueue(name, 'background');
  options.onAlarm(createAlarmListener({ world, endpointHealths, showing, enqueueAccount, onLost: leading.onAlarm }));
  options.onReconnect(leading.onReconnect);
  const election = createElection({ ...options, leading, events });
  const runtime = createRuntime({
    reflectors: Object.values(world),
    controllers: [
      accounts,
      workspaces,
      streams,
      packages,
      integrations,
      invitations,
      blocks,
      subscriptions,
      activations,
      revoked,
      routes,
      createIngressKeyWatch(engine('ingresskey', 1), world),
    ],
    elector: election.elector,
    prepare: async (term, over) => {
      await leading.begin(term, over);
      endpointHealths.forget();
      backlogWatch.begin(over);
      showing.begin(over);
      auditPass.begin(over);
    },
    onGivenUp: election.onGivenUp,
    finish: events.flush,
    clock,
    log,
  });
  return { ...runtime, works: leading.works, impairments: election.impairments };
}
