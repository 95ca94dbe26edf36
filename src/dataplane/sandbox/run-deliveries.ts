import { jitterOf } from '../../core/delivery/jitter.ts';
import { compressDelay } from '../../core/delivery/simulation.ts';
import { parseEventMeta, parseSimulation } from '../../core/events/event-meta.ts';
import { streamIdOfRef } from '../../core/ids/refs.ts';
import {
  type Claim,
  type Completion,
  createInboxStore,
  type InboxRef,
  inboxMember,
  type StoredEvent,
} from '../../redis/inbox-store.ts';
import { sandboxKeys } from '../../redis/keys.ts';
import { readOpenKeys } from '../../redis/sandbox-reader.ts';
import { writeRun } from '../../redis/sandbox-store.ts';
import { deliver } from '../dispatcher/deliver.ts';
import { type OpenSubscription, openSubscription, type SubscriptionKeys } from '../dispatcher/subscription.ts';
import type { RunView } from './run-view.ts';
import { showHeaders } from './sent-headers.ts';
import { simulateAttempt } from './simulated-attempt.ts';

/** Maximum number of claims per turn. */
const AT_ONCE = 32;
const LEASE_MS = 30_000;
const RETRY_MS = 1_000;

export interface RunDeliveryDeps {
  readonly keys: SubscriptionKeys;
  readonly version: string;
  readonly nowMs: () => number;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly nextToken: () => string;
  readonly alarm: (slot: string) => void;
  /** Pauses after `busyMs` of work to let other tasks run. */
  readonly giveWay: (busyMs: number) => Promise<void>;
}

/** Data about the last attempt of a delivery. Stored as JSON. */
export interface SentAttempt {
  /** Endpoint delays after failed attempts, in milliseconds. */
  readonly retryMs: readonly number[];
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Returns the field in `sent` for a delivery. */
export function sentField(inbox: InboxRef, ref: string): string {
  return `${inboxMember(inbox)} ${ref}`;
}

/** Returns the retry jitter for a delivery in a run. */
export function runJitter(run: string, inbox: InboxRef, ref: string): (failures: number) => number {
  return failures => jitterOf(run, inbox.integration, inbox.sub, ref, failures);
}

/**
 * Makes the due attempts of an inbox just as the production dispatcher would, but without calling the endpoint. The
 * gate is read before each turn. Stops when no more attempts are due, or at `untilMs` on the monotonic clock.
 *
 * @returns time in milliseconds at which the inbox is due, or undefined if it has no events or all of them are held
 */
export async function deliverRun(
  deps: RunDeliveryDeps,
  view: RunView,
  inbox: InboxRef,
  untilMs: number,
): Promise<number | undefined> {
  const { ofRun } = view;
  const store = createInboxStore(ofRun);
  const s = sandboxKeys(view.tenant, view.run);
  for (let groupKeys = await readOpenKeys(ofRun, inbox); ; groupKeys = new Set()) {
    // Copy the gate before each turn, which also discards any changes that previous attempts made to the copy.
    const { subscription: fields } = await view.copyGate(inbox, groupKeys);
    const known = { readSubscription: async () => fields };
    const subscription = await openSubscription(known, deps.keys, deps.version, inbox, deps.wallMs());
    if (subscription === undefined) return undefined;
    const begunMs = deps.monotonicMs();
    const nowMs = deps.nowMs();
    if (begunMs >= untilMs) return nowMs;
    const token = deps.nextToken();
    const claimed = await store.claim(inbox, nowMs, AT_ONCE, token, LEASE_MS);
    if (claimed.answer === 'CLOSED') {
      deps.alarm(`i:${inbox.integration}`);
      return nowMs + RETRY_MS;
    }
    if (claimed.answer !== 'OK') return undefined;
    const { claims, nextMs } = claimed;
    if (claims.length === 0) return nextMs === undefined || nextMs > nowMs ? nextMs : nowMs + RETRY_MS;
    const sent: [field: string, text: string][] = [];
    const completions = await attemptAll(deps, view, inbox, subscription, claims, token, begunMs, sent);
    if (sent.length > 0) await writeRun(ofRun, s.meta, [['HSET', s.sent, ...sent.flat()]]);
    await store.complete(inbox, nowMs, completions);
    await deps.giveWay(deps.monotonicMs() - begunMs);
  }
}

async function attemptAll(
  deps: RunDeliveryDeps,
  view: RunView,
  inbox: InboxRef,
  subscription: OpenSubscription,
  claims: readonly Claim[],
  token: string,
  claimedAtMs: number,
  sent: [field: string, text: string][],
): Promise<Completion[]> {
  const nowMs = deps.nowMs();
  const { queue, gen } = subscription.source;
  const ids = claims.map(({ ref }) => streamIdOfRef(ref));
  const stored = await createInboxStore(view.ofRun).readEvents(view.tenant, queue, gen, ids);
  return Promise.all(
    claims.map(async (claim, i) => {
      const event = stored[i];
      const made = claim.attempts + 1;
      const { ref } = claim;
      const attempt = simulateAttempt(event === undefined ? {} : parseSimulation(event.meta), made, request => {
        const { headers: own, retryMs } = subscription.endpoint;
        const kept: SentAttempt = { retryMs, headers: showHeaders(request.headers, Object.keys(own)) };
        sent.push([sentField(inbox, ref), JSON.stringify(kept)]);
      });
      const random = () => runJitter(view.run, inbox, ref)(made);
      const { monotonicMs, wallMs } = deps;
      const attemptDeps = { attempt, nowMs: () => nowMs, wallMs, monotonicMs, random, onAttempt: () => {} };
      return compress(
        await deliver(attemptDeps, subscription, claim, token, claimedAtMs, event && parsed(event, ref)),
        nowMs,
      );
    }),
  );
}

function parsed({ meta, groupKey, body }: StoredEvent, ref: string) {
  return { meta: parseEventMeta(meta, groupKey, ref), body };
}

/** Shortens the retry delay, since time runs faster in a run. */
function compress(completion: Completion, nowMs: number): Completion {
  if (completion.dueMs === undefined) return completion;
  return { ...completion, dueMs: nowMs + compressDelay(completion.dueMs - nowMs) };
}
