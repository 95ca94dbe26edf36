import { hostname } from 'node:os';
import { createNamespacedViews } from '../kube/namespaced-views.ts';
import { SECRETS } from '../kube/resource.ts';
import type { Backoff } from '../time/backoff.ts';
import { aborted } from '../time/clock.ts';
import { createLocks } from '../time/locks.ts';
import { createAlarmListener } from './alarm-listener.ts';
import { createAuditing } from './audit/auditing.ts';
import { createCaches } from './caches/caches.ts';
import { workspacesOf } from './caches/related-keys.ts';
import { NEEDED_SECRETS, type SecretObject } from './caches/secret-caches.ts';
import { type Context, explainRedisFailure } from './context/context.ts';
import { createDataPlane } from './context/data-plane.ts';
import { createDeletionTimes } from './context/deletion-times.ts';
import { enqueueFollowers } from './context/followers.ts';
import { createForcedRemovalRecorder } from './context/forced-removal.ts';
import { createRemovalReport } from './context/former-streams.ts';
import { isPaused } from './context/paused.ts';
import { CLUSTER_SECRET_ACCESS, createSecretAccess } from './context/secret-access.ts';
import type { ControllerOptions, ControllerRole } from './controller-options.ts';
import { createElection } from './election.ts';
import { createControllerMetrics } from './engine/controller-metrics.ts';
import { createControllers } from './engine/controllers.ts';
import { createEventMetrics } from './engine/event-metrics.ts';
import { createEventRecorder } from './engine/event-recorder.ts';
import { createKeyedController } from './engine/keyed-controller.ts';
import { createRuntime } from './engine/runtime.ts';
import { createAccountControllers } from './kinds/account/controller.ts';
import { createShortages } from './kinds/account/shortages.ts';
import { createActivationControllers } from './kinds/activation/controller.ts';
import { openGatesOf } from './kinds/activation/open-gates.ts';
import { createBlockControllers } from './kinds/block/controller.ts';
import { createStreamControllers } from './kinds/catalog-stream/controller.ts';
import { createIntegrationControllers } from './kinds/integration/controller.ts';
import { unsentInvitations } from './kinds/integration/invitation.ts';
import type { KindParts } from './kinds/kind.ts';
import { createPackageControllers } from './kinds/package/controller.ts';
import { createSubscriptionControllers } from './kinds/subscription/controller.ts';
import { createHeaderSecrets } from './kinds/subscription/header-secrets.ts';
import { registerLiveMetrics } from './kinds/subscription/live-metrics.ts';
import { createSubscriptionServices } from './kinds/subscription/services.ts';
import { createWorkspaceControllers } from './kinds/workspace/controller.ts';
import { createLeadership } from './leadership.ts';
import { registerRootKeyMetrics } from './root-key-metrics.ts';
import { createRootKeyChoice } from './root-keys.ts';
import { createRecentlyGone } from './routes/recently-gone.ts';
import { gatherTenant, objectsOfTenant } from './routes/snapshot.ts';
import { routeSources } from './routes/sources.ts';
import { createTenants } from './routes/tenants.ts';
import { createTermMetrics, registerObjectMetrics } from './state-metrics.ts';
import { createTerms } from './term.ts';

/**
 * Backoff for retries. The backoff is kept short, so that changes are applied within seconds once Redis or the API
 * server is back, and so that an object being deleted doesn't wait much longer than `FINALIZER_TIMEOUT_MS`.
 */
const RETRY: Backoff = { firstMs: 5, mostMs: 5_000 };

/** Creates the caches, including access to the Secrets that they contain. */
function createCachesWith(options: ControllerOptions) {
  const { client, clock, log, secretsRole: role } = options;
  if (role === undefined) return { ...createCaches(options), secretAccess: CLUSTER_SECRET_ACCESS };
  const known = Promise.withResolvers<void>();
  const views = createNamespacedViews<SecretObject>({
    client,
    resource: SECRETS,
    fieldSelector: NEEDED_SECRETS,
    ready: known.promise,
    clock,
    log,
  });
  const { caches, confirm } = createCaches({ ...options, secretViews: views });
  const secretAccess = createSecretAccess({ client, views, caches, role, clock, log });
  void Promise.all([caches.Workspace.synced, caches.namespaces.synced]).then(() => known.resolve());
  return { caches, confirm, secretAccess };
}

/** Creates the components that are shared by the whole controller. */
function createBasis(options: ControllerOptions) {
  const { client, clock, log, registry } = options;
  const { caches, confirm, secretAccess } = createCachesWith(options);
  const controllers = createControllers();
  const terms = createTerms();
  const shortages = createShortages({
    registry,
    exists: account => caches.Account.store.get(account) !== undefined,
    leads: () => terms.lasting() !== undefined,
    // The statuses of all Subscriptions to these workspaces are updated as well because they depend on these routes.
    onNews: (account, turned) => {
      for (const name of workspacesOf(caches, account)) {
        controllers.enqueue('workspace', name, 'background');
        if (turned) controllers.enqueue('routes', name, 'background');
      }
    },
  });
  return {
    caches,
    secretAccess,
    confirm,
    controllers,
    shortages,
    terms,
    locks: createLocks(),
    events: createEventRecorder({
      client,
      clock,
      log,
      metrics: createEventMetrics(registry),
      component: 'sluice-controller',
      instance: hostname(),
    }),
  };
}

type Basis = ReturnType<typeof createBasis>;

/** Creates the component responsible for compiling each tenant's routes from the caches and writing them to Redis. */
function createRoutes(options: ControllerOptions, basis: Basis) {
  const { client, clock, nowMs, log } = options;
  const { caches, secretAccess, controllers, shortages, terms, locks } = basis;
  const headerSecrets = createHeaderSecrets({
    caches,
    client,
    unread: secretAccess.unread,
    enqueueAfter: (name, delayMs) => controllers.enqueueAfter('routes', name, delayMs),
    log,
  });
  const isRecentlyGone = createRecentlyGone(caches.Workspace, clock, (name, leftMs) =>
    controllers.enqueueAfter('routes', name, leftMs),
  );
  const isShort = (account: string) => shortages.isShort(account) === true;
  const tenants = createTenants({
    ...options,
    fence: terms.fence,
    explain: explainRedisFailure,
    prepare: async name => {
      secretAccess.assertRead(name);
      await headerSecrets.read(name);
    },
    gather: (name, isRemoved) => gatherTenant(caches, isRemoved, name, isShort, headerSecrets.fieldsOf, isRecentlyGone),
    objectsOf: name => objectsOfTenant(caches, name),
    knowsKeys: secretAccess.knows,
    isPaused: name => isPaused(caches, name),
    openGates: name => openGatesOf({ caches, nowMs }, name),
    exclusively: locks.exclusively,
    onChanged: (name, uids) => void enqueueFollowers({ caches, controllers }, name, uids),
  });
  return tenants;
}

type Tenants = ReturnType<typeof createRoutes>;

/** Adds the controllers for all kinds, and the controller that applies the routes of changed tenants. */
function addControllers(
  options: ControllerOptions,
  basis: Basis,
  tenants: Tenants,
  subscriptions: ReturnType<typeof createSubscriptionServices>,
): void {
  const { client, clock, log, registry, tracing } = options;
  const { caches, confirm, controllers, events, terms, locks } = basis;
  const metricsOf = createControllerMetrics(registry);
  const engine: KindParts['engine'] = (name, workers) => ({
    name,
    workers,
    client,
    confirm,
    events,
    clock,
    log,
    retry: RETRY,
    metrics: metricsOf(name),
    tracing,
  });
  const dataPlane = createDataPlane({ caches, control: options.control, clock });
  const context: Context = {
    ...options,
    ...basis,
    ...createDeletionTimes(caches, clock),
    tenants,
    fence: terms.fence,
    wallMs: clock.wallMs,
    dataPlane,
    isBacklogAtRisk: subscriptions.backlogWatch.isAtRisk,
    explain: explainRedisFailure,
    shared: locks.shared,
    recordForcedRemoval: createForcedRemovalRecorder(events),
  };
  const parts: KindParts = { ...options, context, dataPlane, engine };
  for (const create of [
    createAccountControllers,
    createWorkspaceControllers,
    createStreamControllers,
    createPackageControllers,
    createIntegrationControllers,
    createBlockControllers,
    createSubscriptionControllers(subscriptions),
    createActivationControllers,
  ]) {
    controllers.add(...create(parts));
  }
  controllers.add(
    createKeyedController({
      ...engine('routes', 4),
      reconcile: name => tenants.sync(name),
      sources: [...routeSources(caches), ...basis.secretAccess.sources, ...basis.secretAccess.producers],
    }),
  );
}

/**
 * Creates the controller role. The role consists of the caches, the leader election, the audit, and the controllers for
 * all kinds.
 */
export function createController(options: ControllerOptions): ControllerRole {
  const { clock, log, registry } = options;
  const basis = createBasis(options);
  const { caches, controllers, events, terms } = basis;
  const tenants = createRoutes(options, basis);
  const subscriptions = createSubscriptionServices({ ...options, ...basis, tenants });
  addControllers(options, basis, tenants, subscriptions);
  registerObjectMetrics(registry, { caches, backlogsAtRisk: subscriptions.backlogWatch.countAtRisk });
  registerLiveMetrics(registry, caches.Subscription.store.values);

  const leading = createLeadership({ ...options, ...basis, tenants });
  const auditPass = createAuditing({
    ...options,
    ...basis,
    tenants,
    fence: terms.fence,
    noteHealths: (subs, texts) => subscriptions.endpointHealths.noteAll(subs, texts),
    noteDeliveries: subscriptions.showing.noteAll,
    onPass: () => subscriptions.prune(),
  });
  options.onAlarm(createAlarmListener({ caches, controllers, subscriptions, onLost: leading.onAlarm }));
  options.onReconnect(leading.onReconnect);
  options.onEventsRemoved(createRemovalReport({ caches, events, log }));
  const rootKeys = createRootKeyChoice({
    ...options,
    fence: terms.fence,
    enqueueAll: () => {
      leading.enqueueAll();
      // If their root key is retired or removed, they need to be reissued.
      for (const key of unsentInvitations(caches)) controllers.enqueue('integration', key, 'background');
    },
  });
  registerRootKeyMetrics(registry, { ...options, caches, waitingFor: rootKeys.waitingFor });
  const election = createElection({ ...options, leading, terms, events });
  const runtime = createRuntime({
    reflectors: Object.values(caches),
    controllers: controllers.all(),
    elector: election.elector,
    prepare: async (term, over) => {
      await Promise.race([basis.secretAccess.ensureAll(), aborted(over)]);
      const keys = options.keys.state();
      await leading.begin(term, over);
      basis.secretAccess.watchBindings(over);
      subscriptions.begin(over);
      auditPass.begin(over);
      rootKeys.begin(over, keys);
    },
    onStartedLeading: createTermMetrics(registry),
    onGivenUp: election.onGivenUp,
    finish: events.flush,
    clock,
    log,
  });
  const { othersStore: leadersStore } = election.elector;
  return { ...runtime, works: leading.works, leadersStore, impairments: election.impairments };
}
