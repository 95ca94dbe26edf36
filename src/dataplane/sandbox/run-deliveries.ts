import { jitterOf } from '../../core/delivery/jitter.ts';
import { compressDelay } from '../../core/delivery/simulation.ts';
import { parseEventMeta, parseSimulation } from '../../core/events/event-meta.ts';
import { streamIdOfRef } from '../../core/ids/refs.ts';
import {
  type Claim,
  type Completion,
  createInboxStore,
  type InboxRef,
  type InboxStore,
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

/** Claims of one turn. */
const AT_ONCE = 32;
const LEASE_MS = 30_000;
const RETRY_MS = 1_000;

export interface RunDeliveryDeps {
  /** Production's, which is only read. */
  readonly inboxes: Pick<InboxStore, 'readSubscription'>;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  readonly nowMs: () => number;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly nextToken: () => string;
  readonly alarm: (slot: string) => void;
  /** Lets others go first after `busyMs` of work. */
  readonly giveWay: (busyMs: number) => Promise<void>;
}

/** What is kept of the last attempt of a delivery, as JSON. */
export interface SentAttempt {
  /** The endpoint's waits after failed attempts, ms. */
  readonly retryMs: readonly number[];
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Field of `sent` for one delivery. */
export function sentField(inbox: InboxRef, ref: string): string {
  return `${inboxMember(inbox)} ${ref}`;
}

/** The jitter of the n-th retry of a delivery in a run. */
export function runJitter(run: string, inbox: InboxRef, ref: string): (failures: number) => number {
  return failures => jitterOf(run, inbox.integration, inbox.sub, ref, failures);
}

/**
 * Makes the attempts of one inbox that are due, as production's dispatcher does, but that nobody is called; the gate is
 * read anew first. Stops when nothing is due, or at `untilMs` of the monotonic clock.
 *
 * @returns when the inbox is due next, ms; undefined: nothing waits, or what waits is held
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
    // Before each turn: also what the attempts of the last one did to the copy is left behind then.
    await view.copyGate(inbox, groupKeys);
    const subscription = await openSubscription(deps.inboxes, deps.keys, deps.version, inbox, deps.wallMs());
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

/** A retry of the run is due as much sooner as its time runs faster. */
function compress(completion: Completion, nowMs: number): Completion {
  if (completion.dueMs === undefined) return completion;
  return { ...completion, dueMs: nowMs + compressDelay(completion.dueMs - nowMs) };
}
