import type { KubeClient } from '../kube/client.ts';
import type { AnyObject } from '../kube/object.ts';
import { NAMESPACES } from '../kube/resource.ts';
import type { ControlStore } from '../redis/control-store.ts';
import { HELD, type TermState } from './term.ts';

/**
 * This error is thrown if Redis contains the routes of another Kubernetes cluster. The routes would be overwritten if
 * this replica became the leader.
 */
export class ForeignRedisError extends Error {
  override readonly name = 'ForeignRedisError';
}

/** The timeout for one attempt to read the identity of the cluster, in milliseconds. */
const READ_CLUSTER_WITHIN_MS = 5_000;

/**
 * Claims the fencing epoch for the term.
 *
 * @throws ForeignRedisError if Redis belongs to another cluster. An error is also thrown if the term has ended, because
 * the claim would fence the current leader.
 */
export async function claimEpoch(
  deps: {
    readonly client: Pick<KubeClient, 'get'>;
    readonly control: Pick<ControlStore, 'lead'>;
    /** The time according to the clock of Redis, in milliseconds. */
    readonly nowMs: () => number;
  },
  state: TermState,
): Promise<void> {
  const { term, over } = state;
  const waiting = { signal: over, timeoutMs: READ_CLUSTER_WITHIN_MS };
  const system = await deps.client.get<AnyObject>(NAMESPACES, { name: 'kube-system' }, waiting);
  over.throwIfAborted();
  if (system === undefined) throw new Error('namespace kube-system cannot be read');
  const answer = await deps.control.lead(system.metadata.uid, term.transitions, deps.nowMs());
  over.throwIfAborted();
  if ('other' in answer) {
    state.held = HELD.foreign;
    throw new ForeignRedisError(
      `this Redis belongs to the cluster ${answer.other}. Use a separate Redis for each cluster`,
    );
  }
  state.epoch = answer.epoch;
  state.held = undefined;
}
