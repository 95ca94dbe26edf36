import type { KubeClient } from '../kube/client.ts';
import { isKubeError } from '../kube/kube-error.ts';
import { createLeaseStore } from '../kube/lease.ts';
import type { AnyObject } from '../kube/object.ts';
import { LEASES } from '../kube/resource.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Impairment } from '../telemetry/role-health.ts';
import type { Clock } from '../time/clock.ts';
import { explainRedisFailure } from './context/context.ts';
import { createElector, type Elector } from './engine/elector.ts';
import type { EventRecorder } from './engine/event-recorder.ts';
import { ReconcileError } from './engine/outcome.ts';
import { ForeignRedisError } from './epoch-claim.ts';
import type { Leadership } from './leadership.ts';

const LEASE_NAME = 'sluice-controller';
/** Usual time until a term begins or the API server answers, ms. */
const USUAL_MS = 10_000;
/** Refusals before they are reported. A single one may follow a deletion of the Lease. */
const REFUSALS = 2;

export interface ElectionDeps {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'update'>;
  readonly leading: Pick<Leadership, 'works' | 'failure'>;
  readonly events: Pick<EventRecorder, 'record'>;
  /** Namespace of the Lease. */
  readonly namespace: string;
  /** Unique to this process. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Logger;
}

/** Creates the leader election, and reports what keeps this replica from leading or from working as the leader. */
export function createElection(deps: ElectionDeps) {
  const { client, leading, namespace, identity, log } = deps;
  const name = { namespace, name: LEASE_NAME };
  const elector = createElector({ ...deps, leases: createLeaseStore(client, name) });

  async function recordGivenUp(error: unknown): Promise<void> {
    const lease = await client.get<AnyObject>(LEASES, name, { over: 'leases', timeoutMs: 5_000 });
    if (lease === undefined) return;
    const message = `${identity} releases the Lease so that another replica can try. ${whyNotStarted(error).message}`;
    const resource = LEASES;
    deps.events.record({ resource, metadata: lease.metadata }, { type: 'Warning', reason: 'TermNotStarted', message });
  }

  return {
    elector,

    /** Records on the Lease that this replica releases it. Never throws. */
    onGivenUp: (error: unknown): void => {
      recordGivenUp(error).catch((err: unknown) => log.debug({ err }, 'an Event of the Lease could not be written'));
    },

    /** Returns the reasons why this replica cannot lead, or cannot work while it leads. */
    impairments: (): readonly Impairment[] => [
      ...leaseImpairments(elector, namespace),
      ...termImpairments(elector, leading),
    ],
  };
}

function leaseImpairments({ trouble }: Pick<Elector, 'trouble'>, namespace: string): readonly Impairment[] {
  const found = trouble();
  if (found === undefined) return [];
  const { error, times, forMs } = found;
  const lease = `Lease ${namespace}/${LEASE_NAME}`;
  const unavailable = (cause: Impairment['cause'], message: string): readonly Impairment[] => [
    { reason: 'LeaseUnavailable', cause, message: `${lease} ${message}` },
  ];
  if (isKubeError(error, 404) && times >= REFUSALS) {
    return unavailable(
      'settings',
      `cannot be created: namespace ${namespace} does not exist. Create it, or set SLUICE_NAMESPACE to the namespace of the Lease.`,
    );
  }
  if (isKubeError(error, 403) && times >= REFUSALS) {
    return unavailable(
      'settings',
      `is forbidden. Bind the Role ${LEASE_NAME}, which allows create, get and update of Leases, in namespace ${namespace}, or set SLUICE_NAMESPACE to the namespace where it is bound.`,
    );
  }
  if (forMs < USUAL_MS) return [];
  return unavailable(
    'dependency',
    `can be neither read nor written: ${messageOf(error)}. Check the API server (KUBECONFIG).`,
  );
}

function termImpairments(
  elector: Pick<Elector, 'leadingForMs' | 'standsAside'>,
  { works, failure }: Pick<Leadership, 'works' | 'failure'>,
): readonly Impairment[] {
  const forMs = elector.leadingForMs();
  if (works() || (forMs === undefined && !elector.standsAside())) return [];
  const error = failure();
  if (error === undefined && (forMs ?? 0) < USUAL_MS) return [];
  return [whyNotStarted(error)];
}

function whyNotStarted(error: unknown): Impairment {
  if (error instanceof ForeignRedisError) {
    const message = `${messageOf(error)}. Set SLUICE_REDIS_URL of this installation to its own Redis.`;
    return { reason: 'ForeignRedis', cause: 'settings', message };
  }
  const redis = explainRedisFailure(error) instanceof ReconcileError;
  const check = redis
    ? 'Check Redis (SLUICE_REDIS_URL)'
    : 'Check the API server (KUBECONFIG) and Redis (SLUICE_REDIS_URL)';
  const why = error === undefined ? 'it still waits for an answer' : messageOf(error);
  const message = `This replica holds the Lease and cannot work: ${why}. ${check}.`;
  return { reason: 'TermNotStarted', cause: 'dependency', message };
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}
