import type { KubeClient } from '../kube/client.ts';
import { LEASE_NAME, listRivalLeases, type RivalLease } from '../kube/lease.ts';
import type { Impairment } from '../telemetry/role-health.ts';
import type { Clock } from '../time/clock.ts';
import type { Elector } from './engine/elector.ts';
import type { Admission } from './engine/lease-hold.ts';

/** The time between two lists of the Leases while another installation leads, in milliseconds. */
const ASK_AGAIN_MS = 10_000;

/** Thrown if the controller does not know whether another installation leads. The reason is the `cause`. */
export class UnknownRivalsError extends Error {
  override readonly name = 'UnknownRivalsError';
}

interface Rivals {
  /** Refuses while another namespace has a controller with the same name. Rejects with an UnknownRivalsError. */
  readonly admits: Admission;
  /** Returns why this replica does not lead, if it was refused. */
  readonly impairments: (elector: Pick<Elector, 'refusal'>) => readonly Impairment[];
}

/**
 * Ensures that only one installation with the same name leads in a cluster. Two installations with the same name manage
 * the same Workspaces, but usually use different Redis servers. If both were to lead, one of them would delete streams
 * whose events are stored in the Redis of the other one.
 *
 * Each controller first writes its own Lease and then lists those of all namespaces. If two of them do so at the same
 * time, at least one finds the other one. A controller that finds another one never leads. If both find each other,
 * both release their Leases, and the one with the smaller namespace name retries first.
 *
 * The Lease of another namespace never expires, because it is not possible to tell a controller that was removed from
 * one that will continue. A Lease that was released is only free for a controller with the same Redis. With another
 * Redis, two installations could take turns when their controllers are restarted.
 */
export function createRivals(options: {
  readonly client: Pick<KubeClient, 'list'>;
  /** Returns the id of the own Redis, if it has any. */
  readonly readStore: () => Promise<string | undefined>;
  /** The name of this installation. */
  readonly instance: string;
  /** The namespace of its Lease. */
  readonly namespace: string;
  readonly clock: Pick<Clock, 'nowMs'>;
}): Rivals {
  const { client, readStore, instance, namespace, clock } = options;
  let found: RivalLease | undefined;
  let nextMs = Number.NEGATIVE_INFINITY;

  async function findRival(signal: AbortSignal): Promise<RivalLease | undefined> {
    const all = await listRivalLeases(client, { instance, namespace }, signal);
    const holder = all.find(rival => rival.holder !== '');
    const released = all.filter(({ store }) => store !== undefined);
    if (holder !== undefined || released.length === 0) return holder;
    const own = await readStore();
    return released.find(({ store }) => store !== own);
  }

  return {
    admits: async (when, signal) => {
      if (clock.nowMs() < nextMs) return false;
      try {
        found = await findRival(signal);
      } catch (cause) {
        throw new UnknownRivalsError(
          `it is not known whether another installation with the same name leads: ${textOf(cause)}`,
          { cause },
        );
      }
      if (found === undefined) return true;
      if (when === 'before' || found.namespace < namespace) nextMs = clock.nowMs() + ASK_AGAIN_MS;
      return false;
    },

    impairments: ({ refusal }) => {
      if (found === undefined || refusal() === undefined) return [];
      // A process that also runs other roles must not be removed from their Services.
      const cause = refusal() === 'first' ? 'settings' : 'dependency';
      return [{ reason: 'InstanceTaken', cause, message: describe(found, instance) }];
    },
  };
}

function describe({ namespace, holder }: RivalLease, instance: string): string {
  const named = instance === '' ? 'that also has no name' : `that is also named ${instance}`;
  const state =
    holder === ''
      ? 'and its controller, which was stopped, used another Redis'
      : `and its controller ${holder} holds the Lease ${namespace}/${LEASE_NAME}`;
  return `Namespace ${namespace} has an installation ${named}, ${state}. This replica does not lead because both would manage the same Workspaces, and events could be lost. Set SLUICE_INSTANCE (instance in the chart values) to another name. If that installation does not exist anymore, run kubectl delete lease ${LEASE_NAME} --namespace ${namespace}.`;
}

/** The remedy if the Leases of other namespaces can't be listed because a permission is missing. */
export const LIST_FORBIDDEN = `The Leases named ${LEASE_NAME} of other namespaces cannot be listed, so this replica does not know whether another installation with the same name leads. Bind the ClusterRole sluice-controller, which includes this permission.`;

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
