import { CONDITION } from '../../../api/condition-reasons.ts';
import { ENDPOINT_DEFAULTS } from '../../../api/endpoint.ts';
import type { SubscriptionSpec, SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import type { EndpointHealth } from '../../../core/delivery/endpoint-health.ts';
import { generationOf, publicId, tenantId } from '../../../core/ids/ids.ts';
import { enabledMsOf, type SubscriptionVerdict } from '../../../core/routing/compile-routes.ts';
import { LONGEST_RETENTION_MS } from '../../../redis/control-plan.ts';
import type { InboxRef } from '../../../redis/inbox-store.ts';
import { withoutSubscription } from '../../../redis/tenant-index.ts';
import type { Cached } from '../../caches/caches.ts';
import { LET_GO_AFTER_MS, type Room, timestampOf } from '../../context/context.ts';
import { isPaused, planPaused, settled } from '../../context/paused.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { Finalization, Outcome } from '../../engine/outcome.ts';
import type { EndpointHealths } from './endpoint-healths.ts';
import { planSubscription, type SubscriptionFacts } from './plan.ts';
import { mirrorSigningSecret } from './signing-secret.ts';

/** Returns whether the producer granted this workspace the integration. Only then does a status show the producer. */
function isGranted({ world }: Room, { metadata, spec }: Cached<'Subscription'>): boolean {
  const integration = world.Integration.store.get(`${spec.producer}/${spec.integration}`)?.spec;
  return (
    integration?.workspace === metadata.namespace && integration?.declined !== true && integration?.revoked !== true
  );
}

const UNGRANTED = { ready: 'WaitingForGrant', live: 'NotAdmitted' } as const;
const BLOCKED = { ready: 'Admitted', live: 'Blocked' } as const;

/** Returns the status while the producer's workspace is paused: unchanged, except for what closed meanwhile. */
function pausedSubscription(room: Room, subscription: Cached<'Subscription'>): Outcome<SubscriptionStatus> {
  const { metadata, spec } = subscription;
  if (!isGranted(room, subscription)) return planSubscription(factsOf(room, subscription, UNGRANTED));
  const said = planPaused(subscription, spec.producer);
  if (room.tenants.closureOf(spec.producer, metadata.uid) !== 'Blocked') return said;
  const blocked = planSubscription(factsOf(room, subscription, BLOCKED)).conditions;
  return {
    ...said,
    conditions: said.conditions.map(
      condition =>
        blocked.find(({ type }) => type === CONDITION.Subscription.Live && type === condition.type) ?? condition,
    ),
  };
}

function factsOf(
  room: Room,
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
    backlogAtRisk: room.isBacklogAtRisk(spec.producer, metadata.uid),
    saidOfBacklog: findCondition(status?.conditions, CONDITION.Subscription.BacklogAtRisk),
    endpoint: {
      health,
      said: status?.endpoint,
      saidOfFailing: findCondition(status?.conditions, CONDITION.Subscription.EndpointFailing),
      enabledMs: enabledMsOf(spec.endpoint),
      exists: spec.endpoint !== undefined,
      nowMs: room.nowMs(),
    },
    now: timestampOf(room.wallMs()),
  };
}

function secretVersionOf({ endpoint }: SubscriptionSpec): number | undefined {
  return endpoint === undefined ? undefined : (endpoint.secretVersion ?? ENDPOINT_DEFAULTS.secretVersion);
}

function inboxOf({ metadata, spec }: Cached<'Subscription'>): InboxRef {
  return {
    integration: publicId('Integration', spec.producer, spec.integration),
    sub: publicId('Subscription', metadata.namespace as string, metadata.name),
    inc: generationOf(metadata.uid),
  };
}

export function reconcileSubscription(room: Room & { readonly endpointHealths: Pick<EndpointHealths, 'look'> }) {
  return async (subscription: Cached<'Subscription'>): Promise<Outcome<SubscriptionStatus>> => {
    const { metadata, spec } = subscription;
    if (isPaused(room.world, spec.producer)) return pausedSubscription(room, subscription);
    const { verdicts } = await room.tenants.inForce(spec.producer, subscription);
    const secretVersion = secretVersionOf(spec);
    const mirrorFault =
      secretVersion === undefined ? undefined : await mirrorSigningSecret(room, subscription, secretVersion);
    const health = await room.endpointHealths.look(inboxOf(subscription)).catch(error => {
      throw room.explain(error);
    });
    const facts = factsOf(room, subscription, verdicts.get(metadata.uid) ?? UNGRANTED, health);
    return planSubscription({ ...facts, mirrorFault });
  };
}

/** Closes the routes, then removes the inbox at once (Delete), or keeps it readable until retention ends (Retain). */
export function finalizeSubscription(room: Room) {
  return async (subscription: Cached<'Subscription'>): Promise<Finalization<SubscriptionStatus>> => {
    const { metadata, spec } = subscription;
    try {
      const { routes } = await settled(room, spec.producer, subscription);
      const inbox = inboxOf(subscription);
      // The stream may be deleted before its subscriptions. Its retention is not known then.
      const retentionMs = routes.queues[spec.stream]?.retentionMs ?? LONGEST_RETENTION_MS;
      const keepMs = spec.deletionPolicy === 'Delete' ? 0 : retentionMs;
      await room.tenants.remove(
        spec.producer,
        metadata.uid,
        fence => room.control.dropInbox(fence, tenantId(spec.producer), inbox, keepMs),
        left => withoutSubscription(left, inbox),
      );
    } catch (error) {
      if (room.deletingForMs(subscription) < LET_GO_AFTER_MS) throw room.explain(error);
      room.tellLetGo('Subscription', subscription);
    }
    return 'done';
  };
}
