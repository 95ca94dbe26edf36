import { CONDITION } from '../../../api/condition-reasons.ts';
import { ENDPOINT_DEFAULTS } from '../../../api/endpoint.ts';
import type { SubscriptionSpec, SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import type { EndpointHealth } from '../../../core/delivery/endpoint-health.ts';
import { tenantId } from '../../../core/ids/ids.ts';
import { LONGEST_RETENTION_MS } from '../../../core/routing/retention.ts';
import { enabledMsOf, type SubscriptionVerdict } from '../../../core/routing/subscription-route.ts';
import { timestampOf } from '../../../kube/object.ts';
import { withoutSubscription } from '../../../record/tenant-index.ts';
import type { Cached } from '../../caches/caches.ts';
import { type Context, FINALIZER_TIMEOUT_MS } from '../../context/context.ts';
import { isRemovedDespite } from '../../context/forced-removal.ts';
import { isPaused, planPaused, settledClosing } from '../../context/paused.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { Finalization, Outcome } from '../../engine/outcome.ts';
import type { EndpointHealths } from './endpoint-healths.ts';
import { inboxOf } from './inbox.ts';
import { planSubscription, type SubscriptionFacts } from './plan.ts';
import { ensureSalt } from './salt.ts';
import { mirrorSigningSecret } from './signing-secret.ts';

/**
 * Returns true if the producer has granted the integration to this workspace. If it returns false, the status must not
 * include any information about the producer.
 */
function isGranted({ caches }: Context, { metadata, spec }: Cached<'Subscription'>): boolean {
  const integration = caches.Integration.store.get(`${spec.producer}/${spec.integration}`)?.spec;
  return (
    integration?.workspace === metadata.namespace && integration?.declined !== true && integration?.revoked !== true
  );
}

const UNGRANTED = { ready: 'WaitingForGrant', live: 'NotAdmitted' } as const;
const BLOCKED = { ready: 'Admitted', live: 'Blocked' } as const;

/**
 * Returns the status while the producer's workspace is paused. The status does not change unless the subscription was
 * closed during the pause.
 */
function pausedSubscription(context: Context, subscription: Cached<'Subscription'>): Outcome<SubscriptionStatus> {
  const { metadata, spec } = subscription;
  if (!isGranted(context, subscription)) return planSubscription(factsOf(context, subscription, UNGRANTED));
  const paused = planPaused(subscription, spec.producer);
  if (context.tenants.closureOf(spec.producer, metadata.uid) !== 'Blocked') return paused;
  const blocked = planSubscription(factsOf(context, subscription, BLOCKED)).conditions;
  return {
    ...paused,
    conditions: paused.conditions.map(
      condition =>
        blocked.find(({ type }) => type === CONDITION.Subscription.Live && type === condition.type) ?? condition,
    ),
  };
}

function factsOf(
  context: Context,
  { metadata, spec, status }: Cached<'Subscription'>,
  verdict: SubscriptionVerdict,
  health: EndpointHealth | 'unknown' | undefined = 'unknown',
): SubscriptionFacts {
  return {
    namespace: metadata.namespace as string,
    name: metadata.name,
    producer: spec.producer,
    stream: spec.stream,
    verdict,
    admittedAt: status?.admittedAt,
    signing: status?.signing,
    secretVersion: secretVersionOf(spec),
    firstKey: context.keys.first().id,
    oldestKey: context.keys.oldest().id,
    backlogAtRisk: context.isBacklogAtRisk(spec.producer, metadata.uid),
    recordedBacklog: findCondition(status?.conditions, CONDITION.Subscription.BacklogAtRisk),
    endpoint: {
      health,
      recorded: status?.endpoint,
      recordedFailing: findCondition(status?.conditions, CONDITION.Subscription.EndpointFailing),
      enabledMs: enabledMsOf(spec.endpoint),
      exists: spec.endpoint !== undefined,
      nowMs: context.nowMs(),
    },
    now: timestampOf(context.wallMs()),
  };
}

function secretVersionOf({ endpoint }: SubscriptionSpec): number | undefined {
  return endpoint === undefined ? undefined : (endpoint.secretVersion ?? ENDPOINT_DEFAULTS.secretVersion);
}

export function reconcileSubscription(
  context: Context & { readonly endpointHealths: Pick<EndpointHealths, 'current'> },
) {
  return async (given: Cached<'Subscription'>): Promise<Outcome<SubscriptionStatus>> => {
    if (isPaused(context.caches, given.spec.producer)) return pausedSubscription(context, given);
    const { subscription, salt } = await ensureSalt(context, given);
    const { metadata, spec } = subscription;
    const { verdicts } = await context.tenants.inForce(spec.producer, subscription);
    const secretVersion = secretVersionOf(spec);
    const mirrorFault =
      secretVersion === undefined || salt === undefined
        ? undefined
        : await mirrorSigningSecret(context, subscription, { salt, version: secretVersion });
    const health = await context.endpointHealths.current(inboxOf(subscription)).catch(error => {
      throw context.explain(error);
    });
    const facts = factsOf(context, subscription, verdicts.get(metadata.uid) ?? UNGRANTED, health);
    return planSubscription({ ...facts, mirrorFault });
  };
}

/**
 * Finalizes a subscription which is being deleted. The routes of the subscription are closed first. The Delete policy
 * then removes waiting events immediately, whereas with Retain the producer can look up their state until their
 * retention ends.
 */
export function finalizeSubscription(context: Context) {
  return async (subscription: Cached<'Subscription'>): Promise<Finalization<SubscriptionStatus>> => {
    const { metadata, spec } = subscription;
    try {
      const { routes } = await settledClosing(context, spec.producer, subscription);
      const inbox = inboxOf(subscription);
      // The retention is unknown if the stream is deleted before its subscriptions.
      const retentionMs = routes.queues[spec.stream]?.retentionMs ?? LONGEST_RETENTION_MS;
      const keepMs = spec.deletionPolicy === 'Delete' ? 0 : retentionMs;
      await context.tenants.remove(
        spec.producer,
        metadata.uid,
        fence => context.control.dropInbox(fence, tenantId(spec.producer), inbox, keepMs),
        left => withoutSubscription(left, inbox),
      );
    } catch (error) {
      const isOverdue = context.deletingForMs(subscription) >= FINALIZER_TIMEOUT_MS;
      if (!isRemovedDespite(error) || !isOverdue) throw context.explain(error);
      context.recordForcedRemoval('Subscription', subscription);
    }
    return 'done';
  };
}
