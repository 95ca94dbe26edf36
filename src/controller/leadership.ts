import type { KubeClient } from '../kube/client.ts';
import type { AnyObject } from '../kube/object.ts';
import { NAMESPACES } from '../kube/resource.ts';
import type { ControlStore } from '../redis/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import { aborted, type Clock } from '../time/clock.ts';
import { resourceOf, type World } from './caches/caches.ts';
import type { Term } from './engine/elector.ts';
import type { EventRecorder } from './engine/event-recorder.ts';
import { ReconcileError } from './engine/outcome.ts';
import { watchForLoss } from './loss-watch.ts';
import type { Tenants } from './routes/tenants.ts';

/** This Redis holds the routes of another Kubernetes cluster: leading would overwrite them. */
export class ForeignRedisError extends Error {
  override readonly name = 'ForeignRedisError';
}

/** An alarm of the same tenant within this time says nothing new, ms. */
const SAME_ALARM_MS = 1_000;
/** Tenants brought into force at once: one that hangs holds up no other. */
const TENANTS_AT_ONCE = 16;
/** One try to read the identity of the cluster, ms. */
const READ_CLUSTER_WITHIN_MS = 5_000;

/** Why nothing may be written, as objects say it. */
const HELD = {
  unreached: 'the controller has not reached Redis yet; it tries again',
  foreign: 'Redis holds the data of another Kubernetes cluster; nothing is written until SLUICE_REDIS_URL is changed',
  lost: 'Redis has lost its control state; it is rebuilt from the objects, nothing is routed meanwhile',
} as const;

export interface LeadingDeps {
  readonly client: Pick<KubeClient, 'get'>;
  readonly control: ControlStore;
  readonly world: World;
  readonly tenants: Tenants;
  readonly events: Pick<EventRecorder, 'record'>;
  /** Works on a tenant's routes again. */
  readonly enqueueTenant: (name: string) => void;
  readonly enqueueAccount: (name: string) => void;
  readonly nowMs: () => number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A term as far as Redis is concerned. It ends with the term: the next one knows nothing of it. */
interface TermState {
  readonly term: Term;
  /** Aborts when the lease is lost or the process stops: nothing more is begun. */
  readonly over: AbortSignal;
  /** The fencing epoch, once Redis has given one. */
  epoch: number | undefined;
  held: string | undefined;
  /** Whether a tenant is in force, or there is none. */
  inForce: boolean;
  /** Why it does not work: the last failure to begin or to rebuild, or the loss that is being rebuilt. */
  failure: unknown;
}

/**
 * The leader's term as far as Redis is concerned: the fencing epoch, bringing everything into force once, and noticing
 * when Redis has lost it.
 */
export function createLeading(deps: LeadingDeps) {
  const { control, world, tenants, clock, log } = deps;
  const alarms = new Map<string, number>();
  let current: TermState | undefined;

  function everyTenant(): Set<string> {
    const names = new Set(tenants.names());
    for (const { metadata } of world.Workspace.store.values()) names.add(metadata.name);
    return names;
  }

  /** Not for a term that has ended meanwhile: it would fence the one who leads now. */
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
      throw new ForeignRedisError(
        `this Redis belongs to the cluster ${answer.other}: give each cluster a Redis of its own`,
      );
    }
    state.epoch = answer.epoch;
    state.held = undefined;
  }

  /**
   * Brings every tenant into force once, then says that the control state is whole. One that fails, as on a shard that is
   * away, holds up no other: it stays as it is, and is tried again beside the work of the term.
   *
   * @throws when no tenant could be brought into force, and when the term is over
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
    await control.markClusterReady(fenceNow());
    over.throwIfAborted();
    markInForce(state);
    for (const [tenant, error] of failed) {
      log.error({ err: error as Error, tenant }, 'a tenant could not be brought into force; it is tried again');
      deps.enqueueTenant(tenant);
    }
  }

  function markInForce(state: TermState): void {
    state.inForce = true;
    state.failure = undefined;
  }

  /** Runs `work` and keeps its failure, which says why the term does not work. */
  async function attempt(state: TermState, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!state.over.aborted) state.failure = error;
      throw error;
    }
  }

  function tellWorkspaces(type: 'Normal' | 'Warning', reason: string, message: string): void {
    for (const { metadata } of world.Workspace.store.values()) {
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
          for (const name of world.Account.store.keys()) deps.enqueueAccount(name);
          const message = 'routes, gates and keys are in force again; events that lay in Redis are lost';
          tellWorkspaces('Normal', 'ControlStateRebuilt', message);
        }),
    });
  }

  /** The state of a term that lasts. */
  function lasting(): TermState | undefined {
    return current === undefined || current.term.signal.aborted ? undefined : current;
  }

  function fenceNow(): number {
    const state = lasting();
    if (state === undefined) throw new Error('not leading');
    if (state.held !== undefined || state.epoch === undefined) {
      throw new ReconcileError('RedisUnavailable', state.held ?? HELD.unreached);
    }
    return state.epoch;
  }

  function tenantOfSlot(slot: string): string | undefined {
    const [kind, id = ''] = slot.split(':');
    if (kind === 'i') return world.Integration.store.byIndex('publicId', id)[0]?.metadata.namespace;
    return world.Workspace.store.byIndex('publicId', id)[0]?.metadata.name;
  }

  return {
    /** The fencing epoch of this term; throws without a term, and while nothing may be written. */
    fence: fenceNow,

    /** Begins a term; rejects until Redis can be brought into force, and is called again then. */
    begin: async (term: Term, over: AbortSignal = term.signal): Promise<void> => {
      if (current?.term.signal !== term.signal) {
        current = { term, over, epoch: undefined, held: HELD.unreached, inForce: false, failure: undefined };
      }
      const state = current;
      await attempt(state, async () => {
        await claimEpoch(state);
        tenants.forget('all');
        await bringAllIntoForce(state);
      });
      watch(state);
    },

    /** Whether this replica has a term and brings objects into force in it. */
    works: (): boolean => {
      const state = lasting();
      return state !== undefined && state.inForce && state.failure === undefined;
    },

    /** Why this term, or the last one, does not work; undefined when nothing failed. */
    failure: (): unknown => current?.failure,

    /** Another role found a slot without control state. When everything is lost, the watch rebuilds it, on a second look. */
    onAlarm: (slot: string): void => {
      const name = lasting()?.epoch === undefined ? undefined : tenantOfSlot(slot);
      const now = clock.nowMs();
      if (name === undefined || now - (alarms.get(name) ?? Number.NEGATIVE_INFINITY) < SAME_ALARM_MS) return;
      alarms.set(name, now);
      control.readCluster().then(
        ({ ready }) => {
          if (!ready) return;
          tenants.forget([name]);
          deps.enqueueTenant(name);
        },
        error => log.debug({ err: error as Error }, 'redis cannot be asked'),
      );
    },

    /** What was in flight may or may not be in Redis, and Redis may have come back older: everything is read again. */
    onReconnect: (): void => {
      if (lasting()?.epoch === undefined) return;
      tenants.forget('all');
      for (const name of everyTenant()) deps.enqueueTenant(name);
    },
  };
}

export type Leading = ReturnType<typeof createLeading>;
