import { randomUUID } from 'node:crypto';
import { VERSION } from '../config/version.ts';
import { rootKeyFingerprint } from '../core/delivery/root-key-fingerprint.ts';
import { deriveSealKeys } from '../core/delivery/seal.ts';
import { createDeliveryAlarm } from '../dataplane/dispatcher/delivery-alarm.ts';
import { createDispatcherMetrics } from '../dataplane/dispatcher/dispatcher-metrics.ts';
import { createEndpointClient } from '../dataplane/dispatcher/endpoint-client.ts';
import { createReplaySweep } from '../dataplane/dispatcher/replay-sweep.ts';
import { createPartDispatcher, type PartWork } from '../dataplane/parts/part-dispatcher.ts';
import { createPartWorker } from '../dataplane/parts/part-worker.ts';
import { createRoom } from '../dataplane/parts/room.ts';
import { createUpkeep, type Upkeep } from '../dataplane/parts/upkeep.ts';
import { createAdvance } from '../part/catchup/advance.ts';
import { createExchange } from '../part/claims/exchange.ts';
import { createEvict, createReadOwnClaims } from '../part/claims/held-claims.ts';
import { createLookAtPart } from '../part/claims/look.ts';
import { readSlotOwner } from '../part/gate/slot-owner.ts';
import { createFindRecordedSlot } from '../part/inbox/recorded-slot.ts';
import type { Part } from '../part/keys.ts';
import { createReadBodies } from '../part/log/read-bodies.ts';
import { createMembers } from '../part/members/members.ts';
import { createPartReplayInboxes } from '../part/owner/replays.ts';
import { createSweep } from '../part/sweep/sweep.ts';
import { createTokens } from '../part/tokens/tokens.ts';
import { changedDelivery, disabledEndpoint } from '../redis/alarm.ts';
import { findRedis } from '../redis/connections.ts';
import type { DeliveryNews } from '../redis/delivery-news.ts';
import { createHintIndex } from '../redis/hints.ts';
import { inboxMember } from '../redis/inbox-store.ts';
import { createPushConnection } from '../redis/push-connection.ts';
import { watchRootKey } from '../redis/root-key-watch.ts';
import { createTrafficStore } from '../redis/traffic-store.ts';
import type { Parts, Running } from './parts.ts';
import { openReplays } from './replays.ts';
import { openSandboxRunner } from './sandbox.ts';

/** Claims that this process holds at most. */
const ROOM = 4_096;

/** Starts a dispatcher of streams whose events are in parts. */
export async function startPartDispatcher(parts: Parts): Promise<Running> {
  const { config, log, registry, tracing, redis, nowMs, alarm } = parts;
  const rootKey = config.rootKey as Uint8Array;
  const pushes = createPushConnection(await findRedis(config.redis, log), log);
  const keyWatch = await watchRootKey({
    redis,
    fingerprint: rootKeyFingerprint(rootKey),
    onMatch: () => {
      dispatcher.refresh();
      sandbox.lookEverywhere();
    },
  });
  const client = createEndpointClient({ allowedNetworks: config.allowedNetworks });
  const room = createRoom(ROOM);
  const metrics = createDispatcherMetrics(registry, () => ROOM - room.free(), nowMs);
  const name = randomUUID();
  const deliveryAlarm = createDeliveryAlarm({
    raise: member => alarm(changedDelivery(member)),
    monotonicMs: () => performance.now(),
    setTimer: (run, delayMs) => {
      const timer = setTimeout(run, delayMs);
      return () => clearTimeout(timer);
    },
  });
  let starts = 0;
  const shared = {
    redis,
    pushes,
    exchange: createExchange(redis),
    readOwnClaims: createReadOwnClaims(redis),
    evict: createEvict(redis),
    advance: createAdvance(redis),
    look: createLookAtPart(redis),
    readBodies: createReadBodies(redis),
    keys: { rootKey, sealKeys: deriveSealKeys(rootKey) },
    version: VERSION,
    room,
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
    random: Math.random,
    attempt: client.attempt,
    tracing,
    onAttempt: metrics.attempted,
    onGivenUp: metrics.gaveUp,
    onDisabled: (part: Part, slot: string) => {
      readSlotOwner(redis, part, slot).then(
        owner => owner && alarm(disabledEndpoint(owner)),
        () => {},
      );
    },
    onDelivery: (part: Part, slot: string, news: DeliveryNews) => {
      readSlotOwner(redis, part, slot).then(
        owner => owner && deliveryAlarm.note(inboxMember(owner), news),
        () => {},
      );
    },
    onClosed: ({ tenant, queue }: Part) => alarm(`q:${tenant}:${queue}`),
    log,
  };
  const upkeep = {
    sweep: createSweep(redis),
    tokens: createTokens(redis),
    traffic: createTrafficStore(redis),
    nowMs,
    alarm,
    log,
  };

  function startPart(part: Part): PartWork {
    let home: Upkeep | undefined;
    // Claims of a part are told apart by this name, also where the same process left the part and came back.
    const own = { ...shared, name: `${name}.${(starts++).toString(36)}` };
    const worker = createPartWorker({ ...own, onActivity: hold => home?.wake(hold) }, part);
    const setHome = (isHome: boolean) => {
      if (isHome === (home !== undefined)) return;
      const left = home;
      home = isHome ? createUpkeep(upkeep, part) : undefined;
      home?.start();
      left?.stop().catch(() => {});
    };
    return {
      setHome,
      async stop() {
        await Promise.all([worker.stop(), home?.stop()]);
      },
    };
  }

  const members = createMembers(redis, name);
  const dispatcher = createPartDispatcher({
    redis,
    pushes,
    members,
    name,
    startPart,
    isHeld: keyWatch.differs,
    log,
  });
  const replaySweep = createReplaySweep({
    replays: openReplays(redis, nowMs, createPartReplayInboxes(redis, createFindRecordedSlot(redis))),
    hints: createHintIndex(redis, 'a'),
    nowMs,
    log,
  });
  redis.onReconnect(dispatcher.refresh);
  redis.onReconnect(replaySweep.lookEverywhere);
  const sandbox = openSandboxRunner(parts, keyWatch.differs);
  dispatcher.start();
  replaySweep.start();
  sandbox.start();
  return {
    stop: async () => {
      keyWatch.stop();
      await sandbox.stop();
      await replaySweep.stop();
      await dispatcher.stop();
      deliveryAlarm.flush();
      pushes.close();
      await client.close();
    },
    impairments: () => [...parts.redisImpairments(), ...keyWatch.impairments()],
  };
}
