import type { KubeClient } from '../kube/client.ts';
import { type Clock, sleep } from '../kube/clock.ts';
import type { AnyObject } from '../kube/object.ts';
import { NAMESPACES } from '../kube/resource.ts';
import type { ControlStore } from '../redis/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import { watchForLoss } from './loss-watch.ts';
import type { Term } from './runtime/elector.ts';
import type { EventRecorder } from './runtime/event-recorder.ts';
import type { Tenants } from './tenant/tenants.ts';
import { resourceOf, type World } from './world.ts';

/** This Redis holds the routes of another Kubernetes cluster: leading would overwrite them. */
export class ForeignRedisError extends Error {
  override readonly name = 'ForeignRedisError';
}

/** An alarm of the same tenant within this time says nothing new, ms. */
const SAME_ALARM_MS = 1_000;

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

/**
 * The leader's term as far as Redis is concerned: the fencing epoch, bringing everything into force once, and noticing
 * when Redis has lost it.
 */
export function createLeading(deps: LeadingDeps) {
  const { control, world, tenants, clock, log } = deps;
  const alarms = new Map<string, number>();
  let fence: number | undefined;
  let step: () => void = () => {};

  function everyTenant(): Set<string> {
    const names = new Set(tenants.names());
    for (const { metadata } of world.Workspace.store.values()) names.add(metadata.name);
    return names;
  }

  /** Not for a term that has ended meanwhile: it would fence the one who leads now. */
  async function claimEpoch({ transitions, signal }: Term): Promise<void> {
    const system = await deps.client.get<AnyObject>(NAMESPACES, { name: 'kube-system' });
    signal.throwIfAborted();
    if (system === undefined) throw new Error('namespace kube-system cannot be read');
    const answer = await control.lead(system.metadata.uid, transitions, deps.nowMs());
    if ('other' in answer) {
      throw new ForeignRedisError(
        `this Redis belongs to the cluster ${answer.other}: give each cluster a Redis of its own`,
      );
    }
    signal.throwIfAborted();
    fence = answer.epoch;
  }

  /**
   * Brings every tenant into force once, then says that the control state is whole. One that fails, as on a shard that is
   * away, holds up no other: it stays as it is, and is tried again beside the work of the term.
   *
   * @throws when no tenant could be brought into force
   */
  async function bringAllIntoForce(): Promise<void> {
    const failed = new Map<string, unknown>();
    const names = everyTenant();
    for (const name of names) {
      try {
        await tenants.sync(name);
      } catch (error) {
        failed.set(name, error);
      }
    }
    const [first] = failed.values();
    if (failed.size > 0 && failed.size === names.size) throw first;
    await control.markClusterReady(fenceNow());
    for (const [tenant, error] of failed) {
      log.error({ err: error as Error, tenant }, 'a tenant could not be brought into force; it is tried again');
      deps.enqueueTenant(tenant);
    }
  }

  function tellWorkspaces(type: 'Normal' | 'Warning', reason: string, message: string): void {
    for (const { metadata } of world.Workspace.store.values()) {
      deps.events.record({ resource: resourceOf('Workspace'), metadata }, { type, reason, message });
    }
  }

  function fenceNow(): number {
    if (fence === undefined) throw new Error('not leading');
    return fence;
  }

  function tenantOfSlot(slot: string): string | undefined {
    const [kind, id = ''] = slot.split(':');
    if (kind === 'i') return world.Integration.store.byIndex('publicId', id)[0]?.metadata.namespace;
    return world.Workspace.store.byIndex('publicId', id)[0]?.metadata.name;
  }

  return {
    /** The fencing epoch of this term; throws while there is none. */
    fence: fenceNow,

    /** Begins a term; rejects until Redis can be brought into force. */
    begin: async (term: Term): Promise<void> => {
      const { signal } = term;
      await claimEpoch(term);
      tenants.forget('all');
      await bringAllIntoForce();
      const over = new AbortController();
      step = () => over.abort();
      signal.addEventListener('abort', () => {
        over.abort();
        fence = undefined;
      });
      void watchForLoss({
        readCluster: control.readCluster,
        sleep: ms => sleep(clock, ms, over.signal),
        stopped: () => over.signal.aborted,
        log,
        onLost: () => {
          tenants.hold('Redis has lost its control state; it is rebuilt from the objects, nothing is routed meanwhile');
          const message =
            'Redis has lost its control state (routes, gates, keys); ingress answers 503 until it is rebuilt';
          tellWorkspaces('Warning', 'ControlStateLost', message);
        },
        onRebuild: async () => {
          await claimEpoch(term);
          tenants.hold(undefined);
          await bringAllIntoForce();
          for (const name of world.Account.store.keys()) deps.enqueueAccount(name);
          const message = 'routes, gates and keys are in force again; events that lay in Redis are lost';
          tellWorkspaces('Normal', 'ControlStateRebuilt', message);
        },
      });
    },

    /** Ends what the term began, before the lease is released. */
    end: () => step(),

    /** Another role found a slot without control state. When everything is lost, the watch rebuilds it, on a second look. */
    onAlarm: (slot: string): void => {
      const name = fence === undefined ? undefined : tenantOfSlot(slot);
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
      if (fence === undefined) return;
      tenants.forget('all');
      for (const name of everyTenant()) deps.enqueueTenant(name);
    },
  };
}
