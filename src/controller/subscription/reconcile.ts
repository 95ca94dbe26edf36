import { ENDPOINT_DEFAULTS } from '../../api/endpoint.ts';
import type { SubscriptionStatus } from '../../api/subscription.ts';
import { generationOf, publicId, tenantId } from '../../core/ids.ts';
import { deletingForMs, LET_GO_AFTER_MS, type Room, timestampOf } from '../room.ts';
import type { Finalization, Outcome } from '../runtime/outcome.ts';
import type { Cached } from '../world.ts';
import { planSubscription } from './plan.ts';
import { mirrorSigningSecret } from './signing-secret.ts';

export function reconcileSubscription(room: Room) {
  return async (subscription: Cached<'Subscription'>): Promise<Outcome<SubscriptionStatus>> => {
    const { metadata, spec, status } = subscription;
    const { verdicts } = await room.tenants.inForce(spec.producer, subscription);
    const secretVersion =
      spec.endpoint === undefined ? undefined : (spec.endpoint.secretVersion ?? ENDPOINT_DEFAULTS.secretVersion);
    if (secretVersion !== undefined) await mirrorSigningSecret(room, subscription, secretVersion);
    return planSubscription({
      namespace: metadata.namespace as string,
      name: metadata.name,
      producer: spec.producer,
      stream: spec.stream,
      verdict: verdicts.get(metadata.uid) ?? { ready: 'WaitingForGrant', live: 'NotAdmitted' },
      admittedAt: status?.admittedAt,
      signing: status?.signing,
      secretVersion,
      now: timestampOf(room.wallMs()),
    });
  };
}

/** Closed in the routes first; then the inbox goes at once (Delete), or stays readable until retention ends (Retain). */
export function finalizeSubscription(room: Room) {
  return async (subscription: Cached<'Subscription'>): Promise<Finalization<SubscriptionStatus>> => {
    const { metadata, spec } = subscription;
    try {
      const { routes } = await room.tenants.inForce(spec.producer, subscription);
      const inbox = {
        integration: publicId('Integration', spec.producer, spec.integration),
        sub: publicId('Subscription', metadata.namespace as string, metadata.name),
        inc: generationOf(metadata.uid),
      };
      const keepMs = spec.deletionPolicy === 'Delete' ? 0 : (routes.queues[spec.stream]?.retentionMs ?? 0);
      await room.tenants.remove(spec.producer, metadata.uid, fence =>
        room.control.dropInbox(fence, tenantId(spec.producer), inbox, keepMs),
      );
    } catch (error) {
      if (deletingForMs(metadata.deletionTimestamp, room.wallMs()) < LET_GO_AFTER_MS) throw room.explain(error);
      room.tellLetGo('Subscription', subscription);
    }
    return 'done';
  };
}
