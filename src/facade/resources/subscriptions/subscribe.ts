import type { SubscriptionSpec } from '../../../api/kinds/subscription.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { subscriptionObjectName } from '../../../core/ids/object-names.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { assertActive } from '../integrations/active-integration.ts';
import { assertPublished } from '../streams/producer-stream.ts';
import { coveringInCaches, isCoveredLive } from './live-coverage.ts';
import { receivingByStream } from './partner-catalog.ts';
import {
  matchesRequest,
  requestedFields,
  type SubscriptionRequest,
  sealRequest,
  sealsOf,
} from './subscription-request.ts';

/** Subscription fields managed by the REST interface. */
export const SUBSCRIPTION_CONCERN = ['producer', 'integration', 'stream', 'ordering', 'endpoint', 'suspended'] as const;

/**
 * Checks with the API server that a subscription can be created. The caches are not sufficient for this, because
 * another replica may just have created a block.
 *
 * @throws Refusal 404, 409 `integration_not_active`, `stream_blocked`, `stream_deprecated`
 */
async function assertNew(facade: Facade, integration: OwnedIntegration, stream: string): Promise<void> {
  const { caches, wallMs } = facade;
  const { producer, name, recipient } = integration;
  const [grant, covered] = await Promise.all([
    caches.live('Integration', { namespace: producer, name }),
    isCoveredLive(facade, integration, stream),
  ]);
  const active = grant !== undefined && integrationStatus(grant, wallMs()) === 'Active';
  if (!active || grant.spec.workspace !== recipient.name) throw new Refusal('integration_not_active');
  await assertPublished(facade, producer, stream, covered);
}

/**
 * If the stream of an existing subscription is blocked, this refuses the subscription. Blocks found in the caches must
 * be confirmed by the API server.
 */
async function assertNotBlocked(facade: Facade, integration: OwnedIntegration, stream: string): Promise<void> {
  if (coveringInCaches(facade, integration, stream).length === 0) return;
  if (await isCoveredLive(facade, integration, stream)) throw new Refusal('stream_blocked');
}

/**
 * Subscribes an integration to a stream. The object name is derived from both, and any existing subscription for the
 * pair is reused.
 *
 * @throws Refusal 409 `subscription_exists` if the existing subscription differs
 */
export async function subscribe(
  facade: Facade,
  integration: OwnedIntegration,
  stream: string,
  asked: SubscriptionRequest,
): Promise<{ readonly made: boolean; readonly subscription: Cached<'Subscription'> }> {
  const { caches, writer } = facade;
  const { producer, name, recipient } = integration;
  const known = receivingByStream(caches, integration).get(stream);
  const object = {
    namespace: recipient.name,
    name: known?.metadata.name ?? subscriptionObjectName(producer, name, stream),
  };
  return writer.edit(async () => {
    const before = await caches.live('Subscription', object);
    // Header values of a subscription that is being deleted can't be used by the subscription that replaces it.
    const present = before?.metadata.deletionTimestamp === undefined ? before : undefined;
    const requested = sealRequest(
      asked,
      present?.spec,
      sealsOf(facade.headerSeals, object, present, asked.endpoint?.url ?? ''),
    );
    if (present !== undefined) {
      await assertActive(facade, integration);
      await assertNotBlocked(facade, integration, stream);
      if (present.status?.admittedAt === undefined) await assertPublished(facade, producer, stream);
      if (matchesRequest(present.spec, requested)) return { made: false, subscription: present };
      const id = publicId('Subscription', object.namespace, object.name);
      const help =
        present.spec.ordering === (requested.ordering ?? 'ByGroupKey')
          ? 'Use PUT to change it'
          : 'You cannot change the ordering. To use a different ordering, delete the subscription and subscribe again';
      throw new Refusal(
        'subscription_exists',
        `The subscription ${id} already exists with a different endpoint or ordering. ${help}.`,
      );
    }
    await assertNew(facade, integration, stream);
    const spec: Partial<SubscriptionSpec> = {
      producer,
      integration: name,
      stream,
      ordering: requested.ordering ?? 'ByGroupKey',
      ...requestedFields(requested),
    };
    const manager = FIELD_MANAGER.facade;
    const wanted = { manager, before, concern: SUBSCRIPTION_CONCERN, spec };
    return { made: true, subscription: await writer.apply('Subscription', object, wanted) };
  });
}
