import type { TrafficSource, TrafficStore } from '../redis/traffic-store.ts';
import type { Logger } from '../telemetry/log.ts';

/** Minimum interval at which a process adds counts from one queue or integration to the series. */
export const FOLD_EVERY_MS = 5_000;
/** Maximum number of sources in memory. If there are more, we forget all of them and look each one up again. */
const REMEMBERED = 50_000;

export interface TrafficFolds {
  /**
   * Notes that something may have been counted. Folding happens in the background, provided the last fold is long
   * enough ago.
   */
  readonly touch: (source: TrafficSource) => void;
  /**
   * Must be called when work on a source ends, before its hint is settled. If we crash before this, the hint remains
   * and whoever takes it over will fold.
   *
   * @param next time in milliseconds at which it is due again by itself, or null for never
   * @param member member the hint belongs to, for sources that have many. Only one of them needs to come back
   * @returns when it is due, which will be earlier if something needs to be folded by then
   */
  readonly settle: (source: TrafficSource, next: number | null, member?: string) => Promise<number | null>;
}

interface Folded {
  readonly atMs: number;
  /** Counts already in the series, or undefined if unknown. */
  readonly text: string | undefined;
  /**
   * Member whose hint is due when it's time to fold again. If every member came back, each would put off the others,
   * for hours.
   */
  readonly awaited?: string;
}

/** Adds counts to the series, both while the work producing them goes on and when it ends. */
export function createTrafficFolds(deps: {
  readonly store: TrafficStore;
  readonly nowMs: () => number;
  readonly log: Logger;
}): TrafficFolds {
  const { store, nowMs, log } = deps;
  const folded = new Map<string, Folded>();
  const nameOf = (source: TrafficSource) =>
    'integration' in source ? source.integration : `${source.tenant}:${source.queue}`;

  function note(name: string, state: Folded): void {
    if (folded.size >= REMEMBERED) folded.clear();
    folded.set(name, state);
  }

  /** Returns false on failure. */
  async function fold(source: TrafficSource): Promise<boolean> {
    const name = nameOf(source);
    const known = folded.get(name)?.text;
    const atMs = nowMs();
    note(name, { atMs, text: known });
    try {
      note(name, { atMs, text: await store.fold(source, atMs, known) });
      return true;
    } catch (error) {
      log.debug({ err: error, source: name }, 'counts could not be folded');
      return false;
    }
  }

  const dueMs = (source: TrafficSource) => {
    const last = folded.get(nameOf(source));
    return last === undefined ? undefined : last.atMs + FOLD_EVERY_MS;
  };
  const sooner = (next: number | null, ms: number) => (next === null ? ms : Math.min(next, ms));

  return {
    touch(source) {
      const due = dueMs(source);
      if (due === undefined) note(nameOf(source), { atMs: nowMs(), text: undefined });
      else if (due <= nowMs()) void fold(source);
    },

    async settle(source, next, member = '') {
      const due = dueMs(source);
      if (due !== undefined && due > nowMs()) {
        const name = nameOf(source);
        const last = folded.get(name) as Folded;
        if ((last.awaited ?? member) !== member) return next;
        note(name, { ...last, awaited: member });
        if (last.awaited === undefined) {
          // Another process may take up that hint and release it while waiting for one that comes to us.
          const isMissed = () => folded.get(name)?.atMs === last.atMs;
          setTimeout(() => isMissed() && void fold(source), due + FOLD_EVERY_MS - nowMs()).unref();
        }
        return sooner(next, due);
      }
      return (await fold(source)) ? next : sooner(next, nowMs() + FOLD_EVERY_MS);
    },
  };
}
