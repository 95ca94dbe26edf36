import type { KubeClient } from '../kube/client.ts';
import type { AnyObject } from '../kube/object.ts';
import { NAMESPACES } from '../kube/resource.ts';
import type { ControlStore } from '../redis/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import { aborted, type Clock } from '../time/clock.ts';
import { type Caches, resourceOf } from './caches/caches.ts';
import type { Controllers } from './engine/controllers.ts';
import type { Term } from './engine/elector.ts';
import type { EventRecorder } from './engine/event-recorder.ts';
import { ReconcileError } from './engine/outcome.ts';
import { watchForLoss } from './loss-watch.ts';
import type { Tenants } from './routes/tenants.ts';
import { HELD, type TermState, type Terms } from './term.ts';

/** Redis holds the routes of another Kubernetes cluster. Leadership would overwrite them. */
export class ForeignRedisError extends Error {
  override readonly name = 'ForeignRedisError';
}

/** Alarms of the same tenant within this time are dropped, ms. */
const SAME_ALARM_MS = 1_000;
/** Number of tenants applied at once, so that one that hangs does not block the others. */
const TENANTS_AT_ONCE = 16;
/** Timeout of one try to read the identity of the cluster, ms. */
const READ_CLUSTER_WITHIN_MS = 5_000;

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
 * Manages the leader's term with Redis: claims the fencing epoch, applies everything once, and rebuilds the control
 * state when Redis loses it.
 */
export function createLeadership(deps: LeadershipDeps) {
  const { terms, control, caches, tenants, clock, log } = deps;
  const alarms = new Map<string, number>();
  const enqueueTenant = (name: string) => deps.controllers.enqueue('routes', name, 'background');

  function everyTenant(): Set<string> {
    const names = new Set(tenants.names());
    for (const { metadata } of caches.Workspace.store.values()) names.add(metadata.name);
    return names;
  }

  /** Claims the fencing epoch. Throws if the term has ended meanwhile: a claim would fence the present leader. */
  async function claimEpoch(state: TermState): Promise<void> {
    const { term, over } = state;
    const waiting = { signal: over, timeoutMs: READ_CLUSTER_WITHIN_MS };
    const system = await deps.client.get<AnyObject>(NAMESPACES, { name: 'kube-system' }, waiting);
    over.throwIfAborted();
    if (system === undefined) throw new Error('namespace kube-system cannot be read');
    const answer = await control.lead(system.metadata.uid, term.transitions, deps.nowMs());
    over.throwIfAborted();
    if ('other' in answer) {
      state.held = HELD.foreign;
      throw new ForeignRedisError(`this Redis belongs to the cluster ${answer.other}: give each cluster its own Redis`);
    }
    state.epoch = answer.epoch;
    state.held = undefined;
  }

  /**
   * Applies every tenant once, then marks the control state as ready. A tenant that fails, for example on a shard that
   * is away, does not block the others: it stays as it is and is retried during the term.
   *
   * @throws when no tenant could be applied, and when the term is over
   */
  async function bringAllIntoForce(state: TermState): Promise<void> {
    const { over } = state;
    const failed = new Map<string, unknown>();
    const names = everyTenant();
    const rest = [...names].values();

    async function work(): Promise<void> {
      for (const name of rest) {
        if (over.aborted) return;
        try {
          await tenants.sync(name);
          markInForce(state);
        } catch (error) {
          failed.set(name, error);
        }
      }
    }

    await Promise.race([Promise.all(Array.from({ length: TENANTS_AT_ONCE }, work)), aborted(over)]);
    over.throwIfAborted();
    const [first] = failed.values();
    if (failed.size > 0 && failed.size === names.size) throw first;
    await control.markClusterReady(terms.fence());
    over.throwIfAborted();
    markInForce(state);
    for (const [tenant, error] of failed) {
      log.error({ err: error as Error, tenant }, 'a tenant could not be brought into force; it is tried again');
      enqueueTenant(tenant);
    }
  }

  function markInForce(state: TermState): void {
    state.inForce = true;
    state.failure = undefined;
  }

  /** Runs `work` and keeps its error as the reason why the term does not work. */
  async function attempt(state: TermState, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!state.over.aborted) state.failure = error;
      throw error;
    }
  }

  function tellWorkspaces(type: 'Normal' | 'Warning', reason: string, message: string): void {
    for (const { metadata } of caches.Workspace.store.values()) {
      deps.events.record({ resource: resourceOf('Workspace'), metadata }, { type, reason, message });
    }
  }

  function watch(state: TermState): void {
    void watchForLoss({
      readCluster: control.readCluster,
      clock,
      over: state.over,
      log,
      onLost: () => {
        state.held = HELD.lost;
        state.inForce = false;
        state.failure ??= new ReconcileError('RedisUnavailable', HELD.lost);
        tenants.doubt();
        const message =
          'Redis has lost its control state (routes, gates, keys); ingress answers 503 until it is rebuilt';
        tellWorkspaces('Warning', 'ControlStateLost', message);
      },
      onRebuild: () =>
        attempt(state, async () => {
          await claimEpoch(state);
          tenants.doubt();
          await bringAllIntoForce(state);
          for (const name of caches.Account.store.keys()) deps.controllers.enqueue('account', name, 'background');
          const message = 'routes, gates and keys are in force again; events that lay in Redis are lost';
          tellWorkspaces('Normal', 'ControlStateRebuilt', message);
        }),
    });
  }

  function tenantOfSlot(slot: string): string | undefined {
    const [kind, id = ''] = slot.split(':');
    if (kind === 'i') return caches.Integration.store.byIndex('publicId', id)[0]?.metadata.namespace;
    return caches.Workspace.store.byIndex('publicId', id)[0]?.metadata.name;
  }

  return {
    /** Begins a term; rejects until Redis can be brought into force, and is called again then. */
    begin: async (term: Term, over: AbortSignal = term.signal): Promise<void> => {
      const state = terms.begin(term, over);
      await attempt(state, async () => {
        await claimEpoch(state);
        tenants.forget('all');
        await bringAllIntoForce(state);
      });
      watch(state);
    },

    /** Returns whether this replica has a term and applies objects in it. */
    works: (): boolean => {
      const state = terms.lasting();
      return state !== undefined && state.inForce && state.failure === undefined;
    },

    /** Why this term, or the last one, does not work; undefined when nothing failed. */
    failure: terms.failure,

    /** Handles a slot without control state that another role found. If everything is lost, the watch rebuilds it. */
    onAlarm: (slot: string): void => {
      const name = terms.lasting()?.epoch === undefined ? undefined : tenantOfSlot(slot);
      const now = clock.nowMs();
      if (name === undefined || now - (alarms.get(name) ?? Number.NEGATIVE_INFINITY) < SAME_ALARM_MS) return;
      alarms.set(name, now);
      control.readCluster().then(
        ({ ready }) => {
          if (!ready) return;
          tenants.forget([name]);
          enqueueTenant(name);
        },
        error => log.debug({ err: error as Error }, 'redis cannot be read'),
      );
    },

    /** Reads everything again: writes in flight may be lost, and Redis may have come back with older data. */
    onReconnect: (): void => {
      if (terms.lasting()?.epoch === undefined) return;
      tenants.forget('all');
      for (const name of everyTenant()) enqueueTenant(name);
    },
  };
}

export type Leadership = ReturnType<typeof createLeadership>;
