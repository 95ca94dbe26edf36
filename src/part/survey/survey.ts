import type { IndexedWork } from '../../hints/work-survey.ts';
import { withDeadline } from '../../time/deadline.ts';
import type { Part } from '../keys.ts';
import { parseListedPart } from '../members/listed-parts.ts';
import type { LookAtWork, WorkOfPart } from './look-at-work.ts';

/** Number of parts per read. */
const PARTS_AT_ONCE = 64;
/** Number of these parts with overdue work. They are read each time. */
const OVERDUE_AT_ONCE = 32;
/** Timeout per part. Parts that don't respond in time are read again next time. */
const PATIENCE_MS = 800;

/** Pending work of all parts. */
export interface Survey {
  readonly openDeliveries: number;
  /** Parts with events that are to be routed on, or to be removed. */
  readonly queues: IndexedWork;
  /** Parts with deliveries. */
  readonly parts: IndexedWork;
}

/** Tracks for how long this process has seen the same value. */
interface Stand {
  readonly at: string;
  readonly sinceMs: number;
}

interface Entry {
  readonly part: Part;
  readonly gen: string;
  /** Number of reads since this part was last read. Unread parts come first, in a different order in each process. */
  looked: number;
  work: WorkOfPart | undefined;
  stands: Readonly<Record<'idle' | 'routing' | 'expired', Stand | undefined>>;
}

const NO_STANDS = { idle: undefined, routing: undefined, expired: undefined };

/**
 * Creates a survey of all parts. Each read sends up to 64 commands, regardless of the number of parts. Earlier results
 * are kept for the other parts, and unread parts are estimated by the average. Rejects if Redis doesn't respond.
 *
 * Deliveries are overdue if no dispatcher works on the part. Stalled routing and removal are only detected by two reads
 * without progress.
 */
export function createSurvey(deps: {
  readonly readParts: () => Promise<ReadonlyMap<string, string>>;
  readonly look: LookAtWork;
  /** From 0 to 1. */
  readonly random: () => number;
}): () => Promise<Survey> {
  const entries = new Map<string, Entry>();
  let looks = 0;

  function list(parts: ReadonlyMap<string, string>): void {
    for (const [name, { gen }] of entries) if (parts.get(name) !== gen) entries.delete(name);
    for (const [name, gen] of parts) {
      if (entries.has(name)) continue;
      const part = parseListedPart(name, gen);
      entries.set(name, { part, gen, looked: -deps.random(), work: undefined, stands: NO_STANDS });
    }
  }

  function choose(): Entry[] {
    const byAge = [...entries.values()].toSorted((a, b) => a.looked - b.looked);
    const chosen = new Set(byAge.filter(isOverdue).slice(0, OVERDUE_AT_ONCE));
    for (const entry of byAge) {
      if (chosen.size === PARTS_AT_ONCE) break;
      chosen.add(entry);
    }
    return [...chosen];
  }

  async function lookAt(entry: Entry): Promise<void> {
    const work = await withDeadline(PATIENCE_MS, () => deps.look(entry.part));
    entry.looked = looks;
    entry.work = work;
    entry.stands = work === undefined ? NO_STANDS : standsOf(work, entry.stands);
  }

  return async function survey() {
    list(await deps.readParts());
    looks++;
    const looked = await Promise.allSettled(choose().map(lookAt));
    if (looked.length > 0 && looked.every(({ status }) => status === 'rejected')) throw new Error('no part answers');
    return sum([...entries.values()]);
  };
}

function standsOf(work: WorkOfPart, before: Entry['stands']): Entry['stands'] {
  const { nowMs, idleSinceMs, routing, expired } = work;
  const stand = (kind: keyof Entry['stands'], at: string | undefined): Stand | undefined => {
    if (at === undefined) return undefined;
    return before[kind]?.at === at ? before[kind] : { at, sinceMs: nowMs };
  };
  return {
    idle: stand('idle', idleSinceMs === 0 ? 'unknown' : undefined),
    routing: stand('routing', routing),
    expired: stand('expired', expired?.id),
  };
}

/** Time since which no dispatcher sends. Undefined if one does, or if there is nothing to send. */
function idleSinceMs({ work, stands }: Entry): number | undefined {
  return stands.idle?.sinceMs ?? work?.idleSinceMs;
}

/** Time since which no dispatcher routes waiting events or removes expired ones. */
function restsSinceMs({ work, stands: { routing, expired } }: Entry): number | undefined {
  if (work === undefined) return undefined;
  // What has been seen once may move at any time.
  const sinceMs = [routing, expired].flatMap(stand => (stand && stand.sinceMs < work.nowMs ? [stand.sinceMs] : []));
  return sinceMs.length === 0 ? undefined : Math.min(...sinceMs);
}

const isOverdue = (entry: Entry) => idleSinceMs(entry) !== undefined || restsSinceMs(entry) !== undefined;

function sum(entries: readonly Entry[]): Survey {
  const known = entries.flatMap(entry => (entry.work === undefined ? [] : [{ entry, work: entry.work }]));
  const estimate = (count: number) => (known.length === 0 ? 0 : Math.round((count * entries.length) / known.length));
  const indexed = (
    isWaiting: (work: WorkOfPart) => boolean,
    sinceOf: (entry: Entry) => number | undefined,
  ): IndexedWork => {
    const overdue = known.flatMap(({ entry, work }) => {
      const sinceMs = sinceOf(entry);
      return sinceMs === undefined ? [] : [Math.max(0, work.nowMs - sinceMs)];
    });
    return {
      waiting: estimate(known.filter(({ work }) => isWaiting(work)).length),
      due: estimate(overdue.length),
      overdueMs: Math.max(0, ...overdue),
    };
  };
  return {
    openDeliveries: estimate(known.reduce((open, { work }) => open + work.open, 0)),
    queues: indexed(work => work.hasEvents || work.routing !== undefined, restsSinceMs),
    parts: indexed(work => work.isWaiting, idleSinceMs),
  };
}
