import type { IndexedWork } from '../../hints/work-survey.ts';
import { withDeadline } from '../../time/deadline.ts';
import type { Part } from '../keys.ts';
import { parseListedPart } from '../members/listed-parts.ts';
import type { LookAtWork, WorkOfPart } from './look-at-work.ts';

/** The number of parts for each read. */
const PARTS_AT_ONCE = 64;
/** The number of these parts that have overdue work. Every read includes these parts. */
const OVERDUE_AT_ONCE = 32;
/** The timeout for each part. If a part does not respond in time, it is included in the next read again. */
const PATIENCE_MS = 800;

/** The pending work of all parts. */
export interface Survey {
  readonly openDeliveries: number;
  /** The number of parts that have events which still need to be routed or removed. */
  readonly queues: IndexedWork;
  /** The number of parts that have deliveries. */
  readonly parts: IndexedWork;
}

/** Tracks the time for which this process has seen the same value. */
interface Stand {
  readonly at: string;
  readonly sinceMs: number;
}

interface Entry {
  readonly part: Part;
  readonly gen: string;
  /**
   * The number of reads since this part was last included. Parts that have never been read come first. Each process
   * reads them in a different order.
   */
  looked: number;
  work: WorkOfPart | undefined;
  stands: Readonly<Record<'idle' | 'routing' | 'expired', Stand | undefined>>;
}

const NO_STANDS = { idle: undefined, routing: undefined, expired: undefined };

/**
 * Creates a survey for all parts. Each read sends up to 64 commands, regardless of the number of parts. For all other
 * parts, earlier results are kept. Parts that were never read are estimated by the average. If Redis does not respond,
 * this rejects.
 *
 * Deliveries are overdue if no dispatcher works on the part. Routing and removal which are stalled can only be detected
 * if there are two reads without any progress.
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

/**
 * The time since which there is no dispatcher that sends events. If there is one, or if there are no events to send,
 * this is undefined.
 */
function idleSinceMs({ work, stands }: Entry): number | undefined {
  return stands.idle?.sinceMs ?? work?.idleSinceMs;
}

/** The time since which no dispatcher routes waiting events or removes expired ones. */
function restsSinceMs({ work, stands: { routing, expired } }: Entry): number | undefined {
  if (work === undefined) return undefined;
  // If a value has only been seen once, it could still change at any time.
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
