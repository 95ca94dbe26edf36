import type { Layout } from '../config/layout.ts';
import { tenantId } from '../core/ids/ids.ts';
import type { DataPlaneOperations } from '../facade/counted-operations.ts';
import type { Caches } from '../facade/objects/caches.ts';
import { integrationRoute } from '../facade/objects/gate-of-objects.ts';
import { createPartGateReader, type StreamsOfIntegration } from '../part/fate/gate-reader.ts';
import { createPartRoutingReader, type StateOfIntegration } from '../part/fate/routing-reader.ts';
import { createFindSlot, type FindStream } from '../part/inbox/find-part.ts';
import { createPartInboxReader } from '../part/inbox/inbox-reader.ts';
import { createPartInboxOperations } from '../part/owner/operations.ts';
import { createPartInboxRecovery } from '../part/owner/recovery.ts';
import { createPartReplayInboxes } from '../part/owner/replays.ts';
import { createPartTrafficReader } from '../part/reasons/traffic-reader.ts';
import type { RedisClient } from '../redis/client.ts';
import { createGateReader, type GateReader } from '../redis/gate-reader.ts';
import { createHintIndex } from '../redis/hints.ts';
import { createInboxOperations } from '../redis/inbox-operations.ts';
import { createInboxReader, type InboxReader } from '../redis/inbox-reader.ts';
import { createInboxRecovery } from '../redis/inbox-recovery.ts';
import { createRoutingReader, type RoutingReader } from '../redis/routing-reader.ts';
import { createTrafficReader, type TrafficReader } from '../redis/traffic-reader.ts';
import { openReplays } from './replays.ts';

/** What the facade reads and does in Redis for one layout. */
export interface FacadeDataPlane extends DataPlaneOperations {
  readonly gates: GateReader;
  readonly inboxes: InboxReader;
  readonly routing: RoutingReader;
  readonly traffic: TrafficReader;
}

/** Inboxes in slots of their own. */
function openQueues(redis: RedisClient, nowMs: () => number): FacadeDataPlane {
  const { lower } = createHintIndex(redis, 'd');
  return {
    gates: createGateReader(redis),
    inboxes: createInboxReader(redis),
    routing: createRoutingReader(redis, nowMs),
    traffic: createTrafficReader(redis),
    operations: createInboxOperations({ redis, nowMs, lower }),
    recovery: createInboxRecovery({ redis, nowMs, lower }),
    replays: openReplays(redis, nowMs),
  };
}

/** Everything of a stream in its parts. Which stream a subscription belongs to is read from the objects. */
function openParts(
  redis: RedisClient,
  nowMs: () => number,
  objects: { readonly caches: () => Caches; readonly wallMs: () => number },
): FacadeDataPlane {
  const findStream: FindStream = ({ sub }) => {
    const [subscription] = objects.caches().by('Subscription', 'publicId', sub);
    return subscription && { tenant: tenantId(subscription.spec.producer), queue: subscription.spec.stream };
  };
  const streamsOf: StreamsOfIntegration = (_tenant, id) => {
    const [integration] = objects.caches().by('Integration', 'publicId', id);
    if (integration === undefined) return [];
    const { namespace, name } = integration.metadata;
    return objects
      .caches()
      .by('Subscription', 'integration', `${namespace}/${name}`)
      .map(({ spec }) => spec.stream);
  };
  const stateOf: StateOfIntegration = id => {
    const [integration] = objects.caches().by('Integration', 'publicId', id);
    return integration === undefined ? 'closed' : integrationRoute(integration, objects.wallMs());
  };
  const findSlot = createFindSlot(redis, findStream);
  return {
    gates: createPartGateReader(redis, streamsOf),
    inboxes: createPartInboxReader(redis, findSlot),
    routing: createPartRoutingReader(redis, nowMs, stateOf),
    traffic: createPartTrafficReader(redis),
    operations: createPartInboxOperations(redis, findSlot),
    recovery: createPartInboxRecovery(redis, findSlot),
    replays: openReplays(redis, nowMs, createPartReplayInboxes(redis, findSlot)),
  };
}

export function openDataPlane(
  layout: Layout,
  redis: RedisClient,
  nowMs: () => number,
  objects: Parameters<typeof openParts>[2],
): FacadeDataPlane {
  return layout === 'parts' ? openParts(redis, nowMs, objects) : openQueues(redis, nowMs);
}
