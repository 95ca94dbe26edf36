import type { KubeClient } from '../kube/client.ts';
import { isKubeError } from '../kube/kube-error.ts';
import { createLeaseStore, LEASE_NAME, leaseLabels } from '../kube/lease.ts';
import type { AnyObject } from '../kube/object.ts';
import { LEASES } from '../kube/resource.ts';
import type { ControlStore } from '../record/control-store.ts';
import { RedisFormatError, RedisInstanceError } from '../redis/format.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Impairment } from '../telemetry/role-health.ts';
import type { Clock } from '../time/clock.ts';
import { explainRedisFailure } from './context/context.ts';
import { createElector, type Elector } from './engine/elector.ts';
import type { EventRecorder } from './engine/event-recorder.ts';
import { ReconcileError } from './engine/outcome.ts';
import { ForeignRedisError } from './epoch-claim.ts';
import type { Leadership } from './leadership.ts';
import { createRivals, LIST_FORBIDDEN, UnknownRivalsError } from './rivals.ts';
import type { Terms } from './term.ts';

/** Time within which a term should begin or the API server should respond, in milliseconds. */
const USUAL_MS = 10_000;
/** A leader renews the Lease every 2 s, and after 15 s without a renewal, another replica takes over. */
const SILENT_MS = 20_000;
/**
 * The number of requests that must be rejected before we report this. A single rejection may be caused by the Lease
 * being deleted and is ignored.
 */
const REFUSALS = 2;

export interface ElectionDeps {
  readonly client: Pick<KubeClient, 'get' | 'list' | 'create' | 'update'>;
  readonly leading: Pick<Leadership, 'works' | 'failure'>;
  readonly terms: Pick<Terms, 'store'>;
  readonly control: Pick<ControlStore, 'readStore'>;
  readonly events: Pick<EventRecorder, 'record'>;
  /** The name of this installation. */
  readonly instance: string;
  /** The namespace in which the Lease is stored. */
  readonly namespace: string;
  /** The identity of this process. Must be unique. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Logger;
}

/**
 * Creates the leader election. The election also reports why this replica can't become the leader, or why it can't work
 * as the leader.
 */
export function createElection(deps: ElectionDeps) {
  const { client, leading, terms, control, instance, namespace, identity, log } = deps;
  const name = { namespace, name: LEASE_NAME };
  const rivals = createRivals({ ...deps, readStore: control.readStore });
  const leases = createLeaseStore(client, name, { labels: leaseLabels(instance), store: terms.store });
  const elector = createElector({ ...deps, leases, admits: rivals.admits });

  async function recordGivenUp(error: unknown): Promise<void> {
    const lease = await client.get<AnyObject>(LEASES, name, { over: 'leases', timeoutMs: 5_000 });
    if (lease === undefined) return;
    const message = `${identity} releases the Lease so that another replica can take over. ${whyNotStarted(error).message}`;
    const resource = LEASES;
    deps.events.record({ resource, metadata: lease.metadata }, { type: 'Warning', reason: 'TermNotStarted', message });
  }

  return {
    elector,

    /** Records an Event on the Lease when this replica releases it. Errors are only logged. */
    onGivenUp: (error: unknown): void => {
      recordGivenUp(error).catch((err: unknown) => log.debug({ err }, 'failed to write an Event for the Lease'));
    },

    /** Returns why this replica can't become the leader, or why it is not able to work while it is the leader. */
    impairments: (): readonly Impairment[] => [
      ...leaseImpairments(elector, namespace),
      ...rivals.impairments(elector),
      ...termImpairments(elector, leading),
    ],
  };
}

function leaseImpairments(
  { trouble, silentMs, holder }: Pick<Elector, 'trouble' | 'silentMs' | 'holder'>,
  namespace: string,
): readonly Impairment[] {
  const found = trouble();
  const lease = `Lease ${namespace}/${LEASE_NAME}`;
  if (found === undefined) {
    if (silentMs() < SILENT_MS) return [];
    const message = `${lease} is held by ${holder()}, which does not renew it. No controller leads until one minute after its last renewal. If the Lease was edited by hand, you can delete it.`;
    return [{ reason: 'LeaseUnavailable', cause: 'dependency', message }];
  }
  const { error, times, forMs } = found;
  const unavailable = (cause: Impairment['cause'], message: string): readonly Impairment[] => [
    { reason: 'LeaseUnavailable', cause, message: `${lease} ${message}` },
  ];
  if (error instanceof UnknownRivalsError && isKubeError(error.cause, 403) && times >= REFUSALS) {
    return [{ reason: 'LeaseUnavailable', cause: 'settings', message: LIST_FORBIDDEN }];
  }
  if (isKubeError(error, 404) && times >= REFUSALS) {
    return unavailable(
      'settings',
      `cannot be created because namespace ${namespace} does not exist. Create the namespace or set SLUICE_NAMESPACE to the namespace of the Lease.`,
    );
  }
  if (isKubeError(error, 403) && times >= REFUSALS) {
    return unavailable(
      'settings',
      `is forbidden. Bind the Role ${LEASE_NAME}, which allows create, get and update of Leases, in namespace ${namespace}. You can also set SLUICE_NAMESPACE to a namespace in which the Role is bound.`,
    );
  }
  if (forMs < USUAL_MS) return [];
  return unavailable(
    'dependency',
    `cannot be read or written: ${messageOf(error)}. Check the connection to the API server (KUBECONFIG).`,
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
    const message = `${messageOf(error)}. Set SLUICE_REDIS_URL to a separate Redis for this installation.`;
    return { reason: 'ForeignRedis', cause: 'settings', message };
  }
  if (error instanceof RedisInstanceError) {
    return { reason: 'ForeignRedis', cause: 'settings', message: `Redis (SLUICE_REDIS_URL): ${messageOf(error)}.` };
  }
  if (error instanceof RedisFormatError) {
    return {
      reason: 'UnsupportedRedisFormat',
      cause: 'settings',
      message: `Redis (SLUICE_REDIS_URL): ${messageOf(error)}.`,
    };
  }
  const redis = explainRedisFailure(error) instanceof ReconcileError;
  const check = redis
    ? 'Check the connection to Redis (SLUICE_REDIS_URL)'
    : 'Check the connections to the API server (KUBECONFIG) and to Redis (SLUICE_REDIS_URL)';
  const why = error === undefined ? 'it is waiting for a response' : messageOf(error);
  const message = `This replica holds the Lease but cannot start its work: ${why}. ${check}.`;
  return { reason: 'TermNotStarted', cause: 'dependency', message };
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}
