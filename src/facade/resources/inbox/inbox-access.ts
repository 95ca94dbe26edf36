import { generationOf } from '../../../core/ids/ids.ts';
import { parsePublicEventId } from '../../../core/ids/public-event-id.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Permission } from '../../../plane/inbox-reader.ts';
import type { InboxRef } from '../../../plane/inbox-ref.ts';
import type { ReplayRefusal } from '../../../plane/replay-prices.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import { isGrantedTo, type OwnedIntegration } from '../../objects/ownership.ts';
import { coveringInCaches } from '../subscriptions/live-coverage.ts';
import { subscriptionStatus } from '../subscriptions/subscription-views.ts';
import { findSubscription } from '../subscriptions/subscriptions.ts';

/** A subscription and its inbox. */
export interface OpenInbox {
  /** Public id `sub_…`. */
  readonly id: string;
  readonly subscription: Cached<'Subscription'>;
  readonly inbox: InboxRef;
}

/** Looks up the subscription inbox. The subscription must belong to this integration. @throws Refusal 404 */
export async function openInbox(facade: Facade, integration: OwnedIntegration, id: string): Promise<OpenInbox> {
  const subscription = await findSubscription(facade, integration, id);
  const inc = generationOf(subscription.metadata.uid);
  return { id, subscription, inbox: { integration: integration.publicId, sub: id, inc } };
}

/**
 * Looks up the inbox of an event, and the ref of the event in this inbox.
 *
 * @throws Refusal 404 `unknown_event`, also if the subscription no longer exists
 */
export async function openEvent(facade: Facade, integration: OwnedIntegration, id: string) {
  const event = parsePublicEventId(id);
  if (event === undefined) throw new Refusal('malformed_id');
  try {
    return { ...(await openInbox(facade, integration, event.subscription)), ref: event.ref };
  } catch (error) {
    if (error instanceof Refusal && error.code === 'unknown_resource') throw new Refusal('unknown_event');
    throw error;
  }
}

/**
 * Checks that the subscription does not have an endpoint. An endpoint that is refused or is waiting for a Secret isn't
 * passed to the data plane, so it appears to be missing there. Another replica may just have removed the endpoint.
 *
 * @throws Refusal 409 `has_endpoint`
 */
export async function assertPulled({ caches }: Facade, { subscription }: OpenInbox): Promise<void> {
  if (subscription.spec.endpoint === undefined) return;
  const { namespace, name } = subscription.metadata;
  const live = await caches.live('Subscription', { namespace, name });
  if (live?.spec.endpoint !== undefined) throw new Refusal('has_endpoint');
}

/** Returns why the subscription is not live as a sentence, or `otherwise` if its status does not contain a reason. */
export function whyNotLive({ subscription }: Pick<OpenInbox, 'subscription'>, otherwise: string): string {
  const { status, message } = subscriptionStatus(subscription, false);
  if (status !== 'Paused') return otherwise;
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}

/** Returns the problem for a subscription that currently can't receive events. */
export function inboxRefusal(
  { caches, wallMs }: Facade,
  { subscription }: Pick<OpenInbox, 'subscription'>,
  answer: Exclude<Permission, 'OPEN'> | ReplayRefusal,
): Refusal {
  switch (answer) {
    case 'PAUSED': {
      const { producer, integration, stream, suspended } = subscription.spec;
      const covering = coveringInCaches({ caches }, { producer, name: integration }, stream);
      if (covering.length > 0) return new Refusal('stream_blocked');
      const detail =
        suspended === true
          ? 'The subscription is suspended. Resume it first.'
          : whyNotLive({ subscription }, 'The subscription is paused. For the reason, see its status.');
      return new Refusal('subscription_not_live', detail);
    }
    case 'PENDING':
    case 'REVOKED':
      return new Refusal('integration_not_active');
    case 'GONE': {
      const { producer, integration } = subscription.spec;
      const grant = caches.get('Integration', { namespace: producer, name: integration });
      return isGrantedTo(grant, subscription.metadata.namespace ?? '') &&
        integrationStatus(grant, wallMs()) === 'Active'
        ? new Refusal(
            'subscription_not_live',
            'The subscription does not have an inbox yet. For the reason, see its status.',
          )
        : new Refusal('integration_not_active');
    }
    case 'INACTIVE':
      return new Refusal('group_key_inactive');
    case 'UNKNOWN':
      return new Refusal('unknown_event');
    case 'EXPIRED':
      return new Refusal('event_expired');
    case 'OPEN_EVENT':
      return new Refusal('event_open');
    case 'BAD_CURSOR':
      return new Refusal('malformed_cursor');
    case 'CLOSED': {
      const { producer: namespace, stream: name } = subscription.spec;
      if (caches.get('CatalogStream', { namespace, name }) === undefined) {
        return new Refusal(
          'subscription_not_live',
          "The producer does not have this subscription's stream. It may have been deleted.",
        );
      }
      return new Refusal('unavailable', 'Sluice is restoring its state in Redis. Try again.');
    }
  }
}
