import { tenantId } from '../core/ids/ids.ts';
import type { Caches } from '../facade/caches/caches.ts';
import type { DataPlaneOperations } from '../facade/counted-operations.ts';
import { integrationRoute } from '../facade/objects/gate-of-objects.ts';
import type { RedisShares } from '../facade/objects/redis-shares.ts';
import { createPartGateReader, type StreamsOfIntegration } from '../part/fate/gate-reader.ts';
import { createPartRoutingReader, type StateOfIntegration } from '../part/fate/routing-reader.ts';
import { createFindSlot, type FindStream } from '../part/inbox/find-part.ts';
import { createPartInboxReader } from '../part/inbox/inbox-reader.ts';
import { createPartInboxOperations } from '../part/owner/operations.ts';
import { createPartInboxRecovery } from '../part/owner/recovery.ts';
import { createPartReplayInboxes } from '../part/owner/replays.ts';
import { createPartTrafficReader } from '../part/reasons/traffic-reader.ts';
import type { InboxReader } from '../plane/inbox-reader.ts';
import type { RoutingReader } from '../plane/routing-reader.ts';
import type { TrafficReader } from '../plane/traffic-reader.ts';
import type { GateReader } from '../record/gate-reader.ts';
import type { RedisClient } from '../redis/client.ts';
import { shareTime } from '../redis/shared-client.ts';
import { openReplays } from './replays.ts';

/** The Redis operations of the facade. */
export interface FacadeDataPlane extends DataPlaneOperations {
  readonly gates: GateReader;
  readonly inboxes: InboxReader;
  readonly routing: RoutingReader;
  readonly traffic: TrafficReader;
}

/**
 * All data of a stream in its parts. The stream of a subscription is read from the objects. Calls wait until the
 * account has some of its Redis share left. Gates don't wait, because closing a gate must not be delayed.
 */
export function openDataPlane(
  redis: RedisClient,
  nowMs: () => number,
  objects: { readonly caches: () => Caches; readonly wallMs: () => number },
  shares: RedisShares,
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
  const reading = shareTime(redis, shares.reading);
  const changing = shareTime(redis, shares.changing);
  const completing = shareTime(redis, shares.completing);
  const [findToRead, findToChange] = [createFindSlot(reading, findStream), createFindSlot(changing, findStream)];
  return {
    gates: createPartGateReader(redis, streamsOf),
    inboxes: createPartInboxReader(reading, findToRead),
    routing: createPartRoutingReader(reading, nowMs, stateOf),
    traffic: createPartTrafficReader(reading),
    operations: {
      ...createPartInboxOperations(changing, findToChange),
      pull: createPartInboxOperations(reading, findToRead).pull,
    },
    recovery: createPartInboxRecovery(changing, findToChange),
    replays: openReplays(
      redis,
      nowMs,
      {
        ...createPartReplayInboxes(completing, createFindSlot(completing, findStream)),
        price: createPartReplayInboxes(reading, findToRead).price,
      },
      completing,
    ),
  };
}
