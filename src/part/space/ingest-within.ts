import { createExpiringMap } from '../../time/expiring-map.ts';
import { partKeys } from '../keys.ts';
import type { EventAnswer, Ingest, IngestAnswer, PartEvent } from '../log/ingest.ts';
import type { Space } from './space.ts';

/** Time during which a part does not ask again after its account had no space left. */
const FULL_MS = 1_000;
const ENTRIES = 10_000;
/** Number of times that space is requested for one call. Another process may use it first. */
const MOST_REQUESTS = 8;

type Refused = Extract<EventAnswer, { answer: 'LIMIT' }>;

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
  async function request(part: Parameters<Ingest>[0], refused: readonly Refused[]): Promise<boolean> {
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

  return async function ingestWithin(part, cfgv, events) {
    const first = await ingest(part, cfgv, events);
    if (first.answer !== 'OK' || !first.events.some(isRefused)) return first;
    const answers = [...first.events];
    let { references, inactive } = first;
    for (let requests = 0; requests < MOST_REQUESTS; requests++) {
      const refused = answers.flatMap((answer, at) => (isRefused(answer) ? [{ answer, at }] : []));
      if (
        refused.length === 0 ||
        !(await request(
          part,
          refused.map(({ answer }) => answer),
        ))
      )
        break;
      const again: IngestAnswer = await ingest(
        part,
        cfgv,
        refused.map(({ at }) => events[at] as PartEvent),
      );
      // The others were stored: those that were not are refused.
      if (again.answer !== 'OK') break;
      references += again.references;
      inactive += again.inactive;
      for (const [i, answer] of again.events.entries()) answers[refused[i]?.at as number] = answer;
    }
    return { ...first, events: answers, references, inactive };
  };
}
