import type { KubeClient } from '../kube/client.ts';
import type { AnyObject } from '../kube/object.ts';
import { NAMESPACES } from '../kube/resource.ts';
import type { ControlStore } from '../record/control-store.ts';
import { RedisFormatError, RedisInstanceError } from '../redis/format.ts';
import { HELD, type TermState } from './term.ts';

/**
 * Thrown if Redis contains the routes of another Kubernetes cluster because becoming the leader would overwrite them.
 */
export class ForeignRedisError extends Error {
  override readonly name = 'ForeignRedisError';
}

/** The timeout for a single attempt to read the cluster identity, in milliseconds. */
const READ_CLUSTER_WITHIN_MS = 5_000;

/**
 * Claims the fencing epoch for the term.
 *
 * @throws ForeignRedisError if this Redis belongs to a different cluster. Also throws if the term has ended because
 * claiming would fence the current leader.
 */
export async function claimEpoch(
  deps: {
    readonly client: Pick<KubeClient, 'get'>;
    readonly control: Pick<ControlStore, 'lead'>;
    /** Current time in milliseconds, according to the Redis clock. */
    readonly nowMs: () => number;
  },
  state: TermState,
): Promise<void> {
  const { term, over } = state;
  const waiting = { signal: over, timeoutMs: READ_CLUSTER_WITHIN_MS };
  const system = await deps.client.get<AnyObject>(NAMESPACES, { name: 'kube-system' }, waiting);
  over.throwIfAborted();
  if (system === undefined) throw new Error('namespace kube-system cannot be read');
  const answer = await deps.control
    .lead(system.metadata.uid, term.transitions, deps.nowMs())
    .catch((error: unknown) => {
      if (error instanceof RedisFormatError) state.held = HELD.format;
      if (error instanceof RedisInstanceError) state.held = HELD.taken;
      throw error;
    });
  over.throwIfAborted();
  if ('other' in answer) {
    state.held = HELD.foreign;
    throw new ForeignRedisError(
      `this Redis belongs to the cluster ${answer.other}. Use a separate Redis for each cluster`,
    );
  }
  state.epoch = answer.epoch;
  state.store = answer.store;
  state.held = undefined;
}
