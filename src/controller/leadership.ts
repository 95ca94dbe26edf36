import type { KubeClient } from '../kube/client.ts';
import { resourceOf } from '../kube/resource.ts';
import type { ControlStore } from '../record/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Clock } from '../time/clock.ts';
import type { Caches } from './caches/caches.ts';
import type { Controllers } from './engine/controllers.ts';
import type { Term } from './engine/elector.ts';
import type { EventRecorder } from './engine/event-recorder.ts';
import { ReconcileError } from './engine/outcome.ts';
import { claimEpoch } from './epoch-claim.ts';
import { syncEveryTenant } from './initial-sync.ts';
import { watchForLoss } from './loss-watch.ts';
import type { Tenants } from './routes/tenants.ts';
import { createSlotAlarm } from './slot-alarm.ts';
import { HELD, type TermState, type Terms } from './term.ts';

export interface LeadershipDeps {
  readonly terms: Terms;
  readonly client: Pick<KubeClient, 'get'>;
  readonly control: ControlStore;
  readonly caches: Caches;
  readonly tenants: Tenants;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly controllers: Pick<Controllers, 'enqueue'>;
  readonly nowMs: () => number;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Manages the term of a leader in Redis. Includes claiming the fencing epoch and applying all tenants once. Control
 * state lost by Redis will be rebuilt.
 */
export function createLeadership(deps: LeadershipDeps) {
  const { terms, caches, tenants } = deps;
  const enqueueTenant = (name: string) => deps.controllers.enqueue('routes', name, 'background');
  const enqueueAll = () => {
    for (const name of everyTenant(deps)) enqueueTenant(name);
  };
  const hasEpoch = () => terms.lasting()?.epoch !== undefined;
  const syncAll = (state: TermState) => syncEveryTenant({ ...deps, enqueueTenant }, state, everyTenant(deps));

  async function rebuild(state: TermState): Promise<void> {
    await claimEpoch(deps, state);
    tenants.doubt();
    await syncAll(state);
    for (const name of caches.Account.store.keys()) deps.controllers.enqueue('account', name, 'background');
    const message = 'Redis had lost its data. Routes, gates, and keys are in force again. Stored events are lost';
    recordOnWorkspaces(deps, 'Normal', 'ControlStateRebuilt', message);
  }

  function onLost(state: TermState): void {
    state.held = HELD.lost;
    state.applied = false;
    state.failure ??= new ReconcileError('RedisUnavailable', HELD.lost);
    tenants.doubt();
    const message =
      'Redis has lost its control state (routes, gates and keys). Ingress responds with 503 until the controller has restored it';
    recordOnWorkspaces(deps, 'Warning', 'ControlStateLost', message);
  }

  return {
    /** Starts a new term. Fails if Redis can't be updated and should then be called again. */
    begin: async (term: Term, over: AbortSignal = term.signal): Promise<void> => {
      const state = terms.begin(term, over);
      await attempt(state, async () => {
        const isRetry = state.store !== undefined;
        await claimEpoch(deps, state);
        if (!isRetry) reportReplaced(deps, state);
        tenants.forget('all');
        await syncAll(state);
      });
      void watchForLoss({
        ...deps,
        readCluster: deps.control.readCluster,
        over,
        onLost: () => onLost(state),
        onRebuild: () => attempt(state, () => rebuild(state)),
      });
    },

    /** Returns true if this replica has a term and is able to apply objects. */
    works: (): boolean => {
      const state = terms.lasting();
      return state !== undefined && state.applied && state.failure === undefined;
    },

    /** Returns the error of the current term or the last term (if there is one). */
    failure: terms.failure,

    onAlarm: createSlotAlarm({
      ...deps,
      hasEpoch,
      reapply: name => {
        tenants.forget([name]);
        enqueueTenant(name);
      },
    }),

    /**
     * Applies all tenants again after reconnecting to Redis. Required because writes in progress may have been lost, or
     * Redis may have been restored from older data.
     */
    onReconnect: (): void => {
      if (!hasEpoch()) return;
      tenants.forget('all');
      enqueueAll();
    },

    /** Compiles and applies all tenants again. */
    enqueueAll,
  };
}

export type Leadership = ReturnType<typeof createLeadership>;

function everyTenant({ tenants, caches }: Pick<LeadershipDeps, 'tenants' | 'caches'>): Set<string> {
  const names = new Set(tenants.names());
  for (const { metadata } of caches.Workspace.store.values()) names.add(metadata.name);
  return names;
}

/** Runs `work`. If it fails, the error is kept as the reason why this term is not working. */
async function attempt(state: TermState, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!state.over.aborted) state.failure = error;
    throw error;
  }
}

/**
 * Reports a Redis without the events of the last leader. Such a Redis looks like one whose events have all been
 * delivered.
 */
function reportReplaced(
  deps: Pick<LeadershipDeps, 'caches' | 'events' | 'log'>,
  { term: { lastStore }, store }: TermState,
): void {
  if (lastStore === undefined || store === undefined || store === lastStore) return;
  const message =
    'This Redis does not contain the data of the last leader. Either SLUICE_REDIS_URL has changed, or Redis has lost its data. Events that are only stored in the former Redis are not delivered';
  deps.log.warn({ store, lastStore }, message);
  recordOnWorkspaces(deps, 'Warning', 'RedisReplaced', message);
}

function recordOnWorkspaces(
  { caches, events }: Pick<LeadershipDeps, 'caches' | 'events'>,
  type: 'Normal' | 'Warning',
  reason: string,
  message: string,
): void {
  for (const { metadata } of caches.Workspace.store.values()) {
    events.record({ resource: resourceOf('Workspace'), metadata }, { type, reason, message });
  }
}
