import { withDeadline } from '../../time/deadline.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import { type Part, partKeys } from '../keys.ts';
import type { EventAnswer, Ingest, IngestAnswer, PartEvent, PartNow } from '../log/ingest.ts';
import type { Space, SpaceUse } from './space.ts';

/** Time during which a part does not ask again after its account had no space left. */
const FULL_MS = 1_000;
const ENTRIES = 10_000;
/** The number of times that space is requested for one call. Another process may use it first. */
const MOST_REQUESTS = 8;
/** The time for these requests. The account can be on another Redis node, for which stored events must not wait. */
const REQUESTS_MS = 1_000;

/** An event that needs more space than its part has. `use` is set if the account has no more either. */
type Refused = Extract<EventAnswer, { answer: 'LIMIT' }> & { readonly use?: SpaceUse };
type Answer = Exclude<EventAnswer, { answer: 'LIMIT' }> | Refused | Unstored;

type Stored = Extract<IngestAnswer, { answer: 'OK' }>;

/** Reasons other than the limit for not storing an event that needs more space than its part had. */
interface Unstored {
  readonly answer: 'GONE' | 'STALE' | 'CLOSED' | 'UNAVAILABLE';
}

/** Answer to a call. LIMIT: the account has reached its limit. `failure`: why some of the events are UNAVAILABLE. */
export type AnswerWithin =
  | (Omit<Stored, 'events'> & { readonly events: readonly Answer[]; readonly failure?: unknown })
  | Exclude<IngestAnswer, Stored>;

/** Answers to the events of a call so far, and the references and inactive events of all of its steps. */
interface Known {
  readonly answers: Answer[];
  references: number;
  inactive: number;
  partNow: PartNow;
}

/** Replaces the answers to events that need space, since something else than the limit kept them from being stored. */
function replaceRefused(known: Known, answer: Unstored['answer']): void {
  for (const [at, each] of known.answers.entries()) if (isRefused(each)) known.answers[at] = { answer };
}

const isRefused = (answer: Answer | undefined): answer is Refused => answer?.answer === 'LIMIT';

/**
 * Stores events within the account's limit. If a part has no space left, requests some from the account and stores the
 * refused events again. Costs nothing as long as there is space, or for accounts without a limit.
 *
 * @param monotonicMs monotonic clock in milliseconds
 */
export function createIngestWithin(options: {
  readonly ingest: Ingest;
  readonly space: Pick<Space, 'grow'>;
  readonly nowMs: () => number;
  readonly monotonicMs?: () => number;
}): (...call: Parameters<Ingest>) => Promise<AnswerWithin> {
  const { ingest, space, nowMs, monotonicMs = () => performance.now() } = options;
  const full = createExpiringMap<{ readonly smallest: number; readonly use: SpaceUse }>({
    ttlMs: FULL_MS,
    entries: ENTRIES,
    nowMs: monotonicMs,
  });

  /**
   * Requests space for all refused events, or for as many of them as possible. If there is not enough for any of them,
   * this returns the use of the account.
   */
  async function request(part: Part, refused: readonly Refused[]): Promise<SpaceUse | undefined> {
    const { meta } = partKeys(part);
    const costs = refused.map(({ cost }) => cost);
    const smallest = Math.min(...costs);
    const known = full.get(meta);
    if (known !== undefined && smallest >= known.smallest) return known.use;
    for (let bytes = costs.reduce((sum, cost) => sum + cost, 0); ; bytes = Math.max(smallest, Math.floor(bytes / 2))) {
      const grown = await space.grow(part, bytes, nowMs());
      if (grown.answer !== 'FULL') return undefined;
      if (bytes > smallest) continue;
      const { limitBytes, usedBytes } = grown;
      full.set(meta, { smallest, use: { limitBytes, usedBytes } });
      return { limitBytes, usedBytes };
    }
  }

  /** Stores refused events again until all are stored, or there is no more space. Changes `known`. */
  async function repeat(part: Part, cfgv: string, events: readonly PartEvent[], known: Known): Promise<void> {
    const untilMs = monotonicMs() + REQUESTS_MS;
    for (let requests = 0; requests < MOST_REQUESTS && monotonicMs() < untilMs; requests++) {
      const refused = known.answers.flatMap((answer, at) => (isRefused(answer) ? [{ answer, at }] : []));
      if (refused.length === 0) return;
      const costs = refused.map(({ answer }) => answer);
      const use = await withDeadline(REQUESTS_MS, () => request(part, costs));
      if (use !== undefined) {
        for (const { answer, at } of refused) known.answers[at] = { ...answer, use };
        return;
      }
      const again = refused.map(({ at }) => events[at] as PartEvent);
      const stored: IngestAnswer = await ingest(part, cfgv, again);
      if (stored.answer !== 'OK') return replaceRefused(known, stored.answer);
      known.references += stored.references;
      known.inactive += stored.inactive;
      known.partNow = stored.partNow;
      for (const [i, answer] of stored.events.entries()) known.answers[refused[i]?.at as number] = answer;
    }
  }

  return async function ingestWithin(part, cfgv, events) {
    const first = await ingest(part, cfgv, events);
    if (first.answer !== 'OK' || !first.events.some(isRefused)) return first;
    const { references, inactive, partNow } = first;
    const known: Known = { answers: [...first.events], references, inactive, partNow };
    let failure: unknown;
    try {
      await repeat(part, cfgv, events, known);
    } catch (error) {
      // Events that were stored must be acknowledged, even if the account can't be asked for the others.
      if (known.answers.every(isRefused)) throw error;
      replaceRefused(known, 'UNAVAILABLE');
      failure = error;
    }
    const { answers, ...counts } = known;
    return { ...first, ...counts, events: answers, ...(failure === undefined ? {} : { failure }) };
  };
}
