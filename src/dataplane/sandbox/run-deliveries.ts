import { jitterOf } from '../../core/delivery/jitter.ts';
import type { KeyRing } from '../../core/delivery/key-ring.ts';
import { compressDelay } from '../../core/delivery/simulation.ts';
import { parseSimulation } from '../../core/events/event-meta.ts';
import { type Completion, createExchange, type Holding } from '../../part/claims/exchange.ts';
import { createEvict } from '../../part/claims/held-claims.ts';
import type { Claim, ClaimedEvent } from '../../part/claims/message.ts';
import { readPart } from '../../part/inbox/find-part.ts';
import { createReadBodies } from '../../part/log/read-bodies.ts';
import { partOfRun } from '../../part/sandbox/run-client.ts';
import { takeOverSlots } from '../../part/sandbox/take-over.ts';
import { sandboxKeys } from '../../redis/keys.ts';
import type { Logger } from '../../telemetry/log.ts';
import { createAttempt } from '../parts/claims/attempt.ts';
import { createOpenSlots, type OpenedSlot } from '../parts/claims/opened-slots.ts';
import type { RunView } from './run-view.ts';
import { showHeaders } from './sent-headers.ts';
import { simulateAttempt } from './simulated-attempt.ts';

/** The maximum number of claims in each turn. */
const AT_ONCE = 32;
const RETRY_MS = 1_000;
/**
 * There is only a single process working on a run at a time. If a process has crashed, its claims are taken over by the
 * next process.
 */
const DISPATCHER = 'run';
/** Claims are only returned in replies. Claims of a run are never pushed. */
const HOLDING: Omit<Holding, 'number' | 'held'> = {
  dispatcher: DISPATCHER,
  readyMs: 0,
  limit: AT_ONCE,
  holdsAlone: false,
  pushed: 0,
  bytes: 0,
  roomBytes: 0,
};

export interface RunDeliveryDeps {
  readonly keys: KeyRing;
  readonly version: string;
  readonly nowMs: () => number;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly log: Logger;
  /** After `busyMs` of work, this waits so that other tasks can be run. */
  readonly giveWay: (busyMs: number) => Promise<void>;
}

/** The data about the last attempt for a delivery. Stored as JSON. */
export interface SentAttempt {
  /** The times to wait after each failed attempt, in milliseconds. */
  readonly retryMs: readonly number[];
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Delivery within a run. */
export interface RunDelivery {
  readonly integration: string;
  /** `sub_…` */
  readonly sub: string;
  readonly slot: string;
  readonly ref: string;
}

/** Returns the field of `sent` that is used for a delivery. */
export function sentField({ slot, ref }: Pick<RunDelivery, 'slot' | 'ref'>): string {
  return `${slot} ${ref}`;
}

/** Returns the jitter to use for the retries of a delivery in a run. */
export function runJitter(run: string, { integration, sub, ref }: RunDelivery): (failures: number) => number {
  return failures => jitterOf(run, integration, sub, ref, failures);
}

/** The attempts that have been made, and their headers for each field in `sent`. */
interface Made {
  readonly completions: Completion[];
  readonly sent: string[];
}

/**
 * Makes all attempts of a queue that are due. Works like the dispatcher for production, but calls no endpoints. The run
 * stops when no more attempts are due, or at `untilMs` of the monotonic clock.
 *
 * @returns the time at which the queue is due, in milliseconds. Undefined if the queue does not have any events, or if
 *   all of them are held
 */
export async function deliverRun(
  deps: RunDeliveryDeps,
  view: RunView,
  queue: string,
  untilMs: number,
): Promise<number | undefined> {
  const { ofRun, redis, tenant } = view;
  const production = await readPart(redis, tenant, queue);
  if (production === undefined) return undefined;
  const part = partOfRun(tenant, queue);
  const openSlots = createOpenSlots({ ...deps, redis }, production);
  const exchange = createExchange(ofRun);
  await createEvict(ofRun)(part, DISPATCHER);
  let ended: readonly Completion[] = [];
  let isStuck = false;
  for (let number = 1; ; number++) {
    const begunMs = deps.monotonicMs();
    const isOver = isStuck || begunMs >= untilMs;
    const holding = { ...HOLDING, number, held: ended.length };
    const answer = await exchange(part, holding, ended.map(compress(deps.nowMs())), isOver ? 0 : AT_ONCE);
    if (answer.answer !== 'OK') throw new Error(`the part of a run answered ${answer.answer}`);
    if (answer.disabled.length > 0) await takeOverSlots({ ...view, queue }, answer.disabled);
    if (isStuck) return deps.nowMs() + RETRY_MS;
    ended = [];
    if (answer.events.length === 0) {
      if (isOver) return deps.nowMs();
      if (answer.disabled.length > 0) continue;
      return answer.more ? deps.nowMs() : answer.dueMs;
    }
    const made = await attemptAll(deps, view, queue, answer.events, openSlots, begunMs);
    await ofRun.note('HSET', sandboxKeys(tenant, view.run).sent, made.sent);
    ended = made.completions;
    isStuck = ended.every(({ outcome }) => outcome === 'released');
    await deps.giveWay(deps.monotonicMs() - begunMs);
  }
}

async function attemptAll(
  deps: RunDeliveryDeps,
  view: RunView,
  queue: string,
  events: readonly ClaimedEvent[],
  openSlots: ReturnType<typeof createOpenSlots>,
  claimedAtMs: number,
): Promise<Made> {
  const part = partOfRun(view.tenant, queue);
  const claims = events.flatMap(event => event.claims.map(claim => ({ claim, event })));
  const large = events.filter(({ size, body }) => body === undefined && size !== undefined).map(({ ref }) => ref);
  const [opened, bodies] = await Promise.all([
    openSlots(claims.map(({ claim }) => claim.slot)),
    createReadBodies(view.ofRun)(part, large),
  ]);
  const bodyOf = ({ ref, body }: ClaimedEvent) => body ?? bodies[large.indexOf(ref)];
  const sent: string[] = [];
  const nowMs = deps.nowMs();
  const completions = claims.map(async ({ claim, event }, i): Promise<Completion> => {
    const slot = opened[i];
    // The subscription was deleted, or its endpoint was removed.
    if (slot === undefined) return { lane: claim.lane, ref: claim.ref, outcome: 'released', reason: 'released' };
    const attempt = createAttempt(
      {
        ...deps,
        nowMs: () => nowMs,
        random: () => runJitter(view.run, deliveryOf(slot, claim))(claim.attempts + 1),
        onAttempt: () => {},
        attempt: simulateAttempt(parseSimulation(event.meta), claim.attempts + 1, request => {
          const { headers: own, retryMs } = slot.subscription.endpoint;
          const kept: SentAttempt = { retryMs, headers: showHeaders(request.headers ?? '', Object.keys(own)) };
          sent.push(sentField(claim), JSON.stringify(kept));
        }),
      },
      part,
    );
    const held = { claim, event, atMs: claimedAtMs, behind: claim.behind, next: undefined };
    const completion = await attempt(slot, held, bodyOf(event));
    // From when it is written on, as the delay counts.
    return completion.dueMs === undefined ? completion : { ...completion, dueMs: completion.dueMs - nowMs };
  });
  return { completions: await Promise.all(completions), sent };
}

function deliveryOf({ row, name }: OpenedSlot, { slot, ref }: Claim): RunDelivery {
  return { integration: row.integration, sub: name, slot, ref };
}

/** Reduces the delay of a retry, because time is faster in a run. */
function compress(nowMs: number): (completion: Completion) => Completion {
  return completion => {
    if (completion.dueMs === undefined) return completion;
    return { ...completion, dueMs: nowMs + compressDelay(completion.dueMs) };
  };
}
