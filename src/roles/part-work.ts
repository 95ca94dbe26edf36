import { VERSION } from '../config/version.ts';
import type { KeyRing } from '../core/delivery/key-ring.ts';
import type { AskConsent } from '../dataplane/dispatcher/consent.ts';
import type { DeliveryAlarm } from '../dataplane/dispatcher/delivery-alarm.ts';
import type { DispatcherMetrics } from '../dataplane/dispatcher/dispatcher-metrics.ts';
import type { EndpointClient } from '../dataplane/dispatcher/endpoint-client.ts';
import { caughtUp, type PartWork, STARTS_AT_ONCE } from '../dataplane/parts/part-dispatcher.ts';
import type { PartMetrics } from '../dataplane/parts/part-metrics.ts';
import { createPartWorker } from '../dataplane/parts/part-worker.ts';
import { createPartCalls } from '../dataplane/parts/part-worker-deps.ts';
import type { Room } from '../dataplane/parts/room.ts';
import { createUpkeep, type Upkeep } from '../dataplane/parts/upkeep.ts';
import { readSlotOwner } from '../part/gate/slot-owner.ts';
import type { Part } from '../part/keys.ts';
import { createNoteStored } from '../part/stored/stored-bytes.ts';
import { createSweep } from '../part/sweep/sweep.ts';
import { createTokens } from '../part/tokens/tokens.ts';
import type { DeliveryNews } from '../plane/delivery-news.ts';
import { type InboxRef, inboxMember } from '../plane/inbox-ref.ts';
import { disabledEndpoint } from '../record/alarm.ts';
import type { PushConnection } from '../redis/connection/push-connection.ts';
import { createTrafficStore } from '../series/traffic-store.ts';
import { systemClock } from '../time/clock.ts';
import { createPacedStarts } from '../time/paced-starts.ts';
import type { Parts } from './parts.ts';

/** State shared by all parts of a dispatcher. */
export interface SharedWork {
  readonly keys: KeyRing;
  /** The process name. */
  readonly name: string;
  readonly pushes: PushConnection;
  readonly room: Room;
  readonly bodyRoom: Room;
  readonly attempt: EndpointClient['attempt'];
  readonly askConsent: AskConsent | undefined;
  readonly metrics: DispatcherMetrics;
  readonly partMetrics: PartMetrics;
  readonly deliveryAlarm: DeliveryAlarm;
}

/** Returns a function that starts a part's worker. */
export function createStartPart(parts: Parts, shared: SharedWork): (part: Part) => PartWork {
  const { redis, nowMs, alarm } = parts;
  const deps = workerDeps(parts, shared);
  const upkeepDeps = {
    sweep: createSweep(redis, systemClock.wallMs),
    tokens: createTokens(redis),
    traffic: createTrafficStore(redis),
    noteStored: createNoteStored(redis),
    nowMs,
    alarm,
  };
  let starts = 0;
  return function startPart(part) {
    let home: Upkeep | undefined;
    const { tally, setHome, observe, leave } = shared.partMetrics.join();
    // Use a new name for each term, so that the claims of a part differ even if the same process has released and
    // acquired the part again.
    const own = { ...deps, tally, name: `${shared.name}.${(starts++).toString(36)}` };
    const worker = createPartWorker({ ...own, onActivity: seen => home?.wake(seen) }, part);
    observe(worker.sending);
    return {
      setHome(isHome) {
        if (isHome === (home !== undefined)) return;
        const left = home;
        home = isHome
          ? createUpkeep({ ...upkeepDeps, onExpired: tally.expired, onFailure: tally.failed }, part)
          : undefined;
        setHome(isHome);
        home?.start();
        left?.stop().catch(() => {});
      },
      async stop() {
        await Promise.all([worker.stop(), home?.stop()]);
        leave();
      },
    };
  };
}

function workerDeps({ log, tracing, redis, alarm }: Parts, shared: SharedWork) {
  const { keys, pushes, room, bodyRoom, attempt, askConsent, metrics, deliveryAlarm } = shared;
  /** All other roles use subscriptions instead of slots. */
  const tell = (part: Part, slot: string, say: (owner: InboxRef) => void) => {
    readSlotOwner(redis, part, slot).then(
      owner => owner && say(owner),
      () => {},
    );
  };
  return {
    redis,
    pushes,
    paced: createPacedStarts(
      STARTS_AT_ONCE,
      () => caughtUp(redis),
      error => log.error({ err: error }, 'failed to look for the lost claims of a part'),
    ),
    ...createPartCalls(redis),
    keys,
    version: VERSION,
    room,
    bodyRoom,
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
    random: Math.random,
    attempt,
    askConsent,
    tracing,
    onAttempt: metrics.attempted,
    onGivenUp: metrics.gaveUp,
    onDisabled: (part: Part, slot: string) => tell(part, slot, owner => alarm(disabledEndpoint(owner))),
    onDelivery: (part: Part, slot: string, news: DeliveryNews) =>
      tell(part, slot, owner => deliveryAlarm.note(inboxMember(owner), news)),
    onClosed: ({ tenant, queue }: Part) => alarm(`q:${tenant}:${queue}`),
    log,
  };
}
