import { randomUUID } from 'node:crypto';
import { VERSION } from '../config/version.ts';
import { createAskConsent } from '../dataplane/dispatcher/consent.ts';
import { createDeliveryAlarm } from '../dataplane/dispatcher/delivery-alarm.ts';
import { createDispatcherMetrics } from '../dataplane/dispatcher/dispatcher-metrics.ts';
import { createEndpointClient } from '../dataplane/dispatcher/endpoint-client.ts';
import { createPartFailures } from '../dataplane/dispatcher/part-failures.ts';
import { createReplaySweep } from '../dataplane/dispatcher/replay-sweep.ts';
import { createPartDispatcher } from '../dataplane/parts/part-dispatcher.ts';
import { createPartMetrics } from '../dataplane/parts/part-metrics.ts';
import { createRoom } from '../dataplane/parts/room.ts';
import { createHintIndex } from '../hints/hints.ts';
import { registerBacklog } from '../hints/work-metrics.ts';
import { createFindRecordedSlot } from '../part/inbox/recorded-slot.ts';
import { createMembers } from '../part/members/members.ts';
import { createPartReplayInboxes } from '../part/owner/replays.ts';
import { readStored } from '../part/stored/stored-bytes.ts';
import { registerStoredMetrics } from '../part/stored/stored-metrics.ts';
import { changedDelivery } from '../record/alarm.ts';
import { watchRootKey } from '../record/root-key-watch.ts';
import { findRedis } from '../redis/connection/connections.ts';
import { createPushConnection, type PushConnection } from '../redis/connection/push-connection.ts';
import { placeOf, redisImpairment } from '../redis/connection/redis-trouble.ts';
import type { Impairment } from '../telemetry/role-health.ts';
import { systemClock } from '../time/clock.ts';
import { createStartPart } from './part-work.ts';
import type { Parts, Running } from './parts.ts';
import { openReplays } from './replays.ts';
import { followRootKeys } from './root-keys.ts';
import { openSandboxRunner } from './sandbox.ts';

/**
 * The number of claims for this process. A workspace gets at most 2,304 of them, and a part 2,048 (see `createRoom`).
 */
const ROOM = 4_608;
/** A workspace with fewer claims than this can always claim more, even if the process's limit is exceeded. */
const LEAST_CLAIMS = 8;
/** The maximum number of bytes of large bodies, i.e. those which are not sent together with their claims. */
const BODY_ROOM = 64 * 2 ** 20;
/**
 * Attempts that take longer than this to end after the dispatcher was stopped are recorded as failed. It is longer than
 * the default timeout of endpoints, and shorter than the time after which the process exits (`shutdown.ts`).
 */
const ABORT_AFTER_MS = 16_000;

/** Without the connection for pushes, events may be sent minutes later. */
function redisImpairments({ config, redisImpairments }: Parts, pushes: PushConnection): readonly Impairment[] {
  const impairments = redisImpairments();
  const error = pushes.problem();
  if (impairments.length > 0 || error === undefined) return impairments;
  return [redisImpairment(config.redis, placeOf(config.redis), error, undefined)];
}

export async function startDispatcher(parts: Parts): Promise<Running> {
  const { config, log, registry, redis, nowMs, alarm } = parts;
  const { keys, refresh, stop: stopReport } = followRootKeys(parts, 'dispatcher');
  const pushes = createPushConnection(await findRedis(config.redis, log), log);
  const keyWatch = await watchRootKey({
    redis,
    keys,
    before: refresh,
    onMatch: () => {
      dispatcher.refresh();
      sandbox.lookEverywhere();
    },
  });
  const client = createEndpointClient(config.endpoints);
  const room = createRoom(ROOM, LEAST_CLAIMS);
  const bodyRoom = createRoom(BODY_ROOM);
  const metrics = createDispatcherMetrics(registry, () => partMetrics.sending(), nowMs);
  const noteFailure = createPartFailures(log, { count: metrics.failed, monotonicMs: systemClock.nowMs });
  const partMetrics = createPartMetrics(registry, () => ROOM - room.free(), noteFailure);
  const name = randomUUID();
  const deliveryAlarm = createDeliveryAlarm({
    raise: member => alarm(changedDelivery(member)),
    monotonicMs: systemClock.nowMs,
    setTimer: systemClock.setTimer,
  });
  const { attempt } = client;
  const origin = config.endpointConsentOrigin;
  const askConsent =
    origin === undefined
      ? undefined
      : createAskConsent({ attempt, origin, version: VERSION, monotonicMs: systemClock.nowMs });
  const shared = { keys, name, pushes, room, bodyRoom, attempt, askConsent, metrics, partMetrics, deliveryAlarm };
  const startPart = createStartPart(parts, shared);
  const members = createMembers(redis, name);
  const dispatcher = createPartDispatcher({
    redis,
    pushes,
    members,
    name,
    startPart,
    onUnlisted: ({ tenant, queue }) => alarm(`q:${tenant}:${queue}`),
    isHeld: keyWatch.differs,
    log,
  });
  const replaySweep = createReplaySweep({
    replays: openReplays(redis, nowMs, createPartReplayInboxes(redis, createFindRecordedSlot(redis))),
    hints: createHintIndex(redis, 'a'),
    nowMs,
    log,
  });
  registerBacklog(registry, async () => (await parts.survey())?.openDeliveries);
  registerStoredMetrics(registry, () => readStored(redis));
  redis.onReconnect(dispatcher.refresh);
  redis.onReconnect(replaySweep.lookEverywhere);
  const sandbox = openSandboxRunner(parts, keys, keyWatch.differs);
  dispatcher.start();
  replaySweep.start();
  sandbox.start();
  return {
    stop: async () => {
      const aborting = setTimeout(() => void client.close(), ABORT_AFTER_MS);
      // Stop everything at the same time, because each of them may need a Redis that does not respond.
      await Promise.all([dispatcher.stop(), replaySweep.stop(), sandbox.stop()]);
      clearTimeout(aborting);
      // Before this, it opens endpoints, so the controller must not use a key that is missing here.
      keyWatch.stop();
      await stopReport();
      deliveryAlarm.flush();
      pushes.close();
      await client.close();
    },
    impairments: () => [...redisImpairments(parts, pushes), ...keyWatch.impairments()],
  };
}
