import { withDeadline } from '../../time/deadline.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import { type Part, partKeys } from '../keys.ts';
import type { EventAnswer, Ingest, IngestAnswer, PartEvent } from '../log/ingest.ts';
import type { Space } from './space.ts';

/** Time during which a part does not ask again after its account had no space left. */
const FULL_MS = 1_000;
const ENTRIES = 10_000;
/** The number of times that space is requested for one call. Another process may use it first. */
const MOST_REQUESTS = 8;
/** The time for these requests. The account can be on another Redis node, for which stored events must not wait. */
const REQUESTS_MS = 1_000;

type Refused = Extract<EventAnswer, { answer: 'LIMIT' }>;

/** Answers to the events of a call so far, and the references and inactive events of all of its steps. */
interface Known {
  readonly answers: EventAnswer[];
  references: number;
  inactive: number;
}

const isRefused = (answer: EventAnswer | undefined): answer is Refused => answer?.answer === 'LIMIT';

/**
 * Stores events within the limit of the account. If a part has no space left, requests some from the account and stores the
 * refused events again. Costs nothing as long as there is space, or for accounts without a limit.
 *
 * @param monotonicMs monotonic clock in milliseconds
 */
export function createIngestWithin(options: {
  readonly ingest: Ingest;
  readonly space: Pick<Space, 'grow'>;
  readonly nowMs: () => number;
  readonly monotonicMs?: () => number;
}): Ingest {
  const { ingest, space, nowMs, monotonicMs = () => performance.now() } = options;
  const full = createExpiringMap<number>({ ttlMs: FULL_MS, entries: ENTRIES, nowMs: monotonicMs });

  /** Requests space for all refused events, or for as many of them as possible. */
  async function request(part: Part, refused: readonly Refused[]): Promise<boolean> {
    const { meta } = partKeys(part);
    const costs = refused.map(({ cost }) => cost);
    const smallest = Math.min(...costs);
    if (smallest >= (full.get(meta) ?? Number.POSITIVE_INFINITY)) return false;
    for (let bytes = costs.reduce((sum, cost) => sum + cost, 0); ; bytes = Math.max(smallest, Math.floor(bytes / 2))) {
      if ((await space.grow(part, bytes, nowMs())).answer !== 'FULL') return true;
      if (bytes === smallest) break;
    }
    full.set(meta, smallest);
    return false;
  }

  /** Stores refused events again until all are stored, or there is no more space. Changes `known`. */
  async function repeat(part: Part, cfgv: string, events: readonly PartEvent[], known: Known): Promise<void> {
    const untilMs = monotonicMs() + REQUESTS_MS;
    for (let requests = 0; requests < MOST_REQUESTS && monotonicMs() < untilMs; requests++) {
      const refused = known.answers.flatMap((answer, at) => (isRefused(answer) ? [{ answer, at }] : []));
      if (refused.length === 0) return;
      const costs = refused.map(({ answer }) => answer);
      if (!(await withDeadline(REQUESTS_MS, () => request(part, costs)))) return;
      const again = refused.map(({ at }) => events[at] as PartEvent);
      const stored: IngestAnswer = await ingest(part, cfgv, again);
      if (stored.answer !== 'OK') return;
      known.references += stored.references;
      known.inactive += stored.inactive;
      for (const [i, answer] of stored.events.entries()) known.answers[refused[i]?.at as number] = answer;
    }
  }

  return async function ingestWithin(part, cfgv, events) {
    const first = await ingest(part, cfgv, events);
    if (first.answer !== 'OK' || !first.events.some(isRefused)) return first;
    const { references, inactive } = first;
    const known: Known = { answers: [...first.events], references, inactive };
    try {
      await repeat(part, cfgv, events, known);
    } catch (error) {
      // Events that were stored must be acknowledged, even if the account can't be asked. The others stay refused.
      if (known.answers.every(isRefused)) throw error;
    }
    return { ...first, events: known.answers, references: known.references, inactive: known.inactive };
  };
}
