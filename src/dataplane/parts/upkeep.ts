import { setTimeout as pause } from 'node:timers/promises';
import { type Part, partKeys } from '../../part/keys.ts';
import type { NoteStored } from '../../part/stored/stored-bytes.ts';
import type { SweepState } from '../../part/sweep/due.ts';
import type { Sweep, Swept } from '../../part/sweep/sweep.ts';
import type { Tokens } from '../../part/tokens/tokens.ts';
import type { TrafficStore } from '../../series/traffic-store.ts';
import { systemClock } from '../../time/clock.ts';
import type { NoteFailure } from '../dispatcher/part-failures.ts';

const TIMES = {
  /** The interval at which the counts of a part are added to its account and to the series. */
  foldMs: 5_000,
  /** The same if there are only a few of them. */
  mostFoldMs: 30_000,
  /** The time to wait before a part is swept after its settings or its subscriptions have changed. */
  sweepMs: 10_000,
  /**
   * The interval at which an active part is swept. Events that are stored in the meantime are never removed earlier.
   */
  sweepActiveMs: 300_000,
  /** The interval at which tokens are requested for a part if its account does not have any. */
  shortMs: 1_500,
  /** The interval at which to check if there are enough tokens for a part. */
  waitedMs: 250,
  /** The interval at which to check if the clocks of Redis and of this machine agree again. */
  clockMs: 60_000,
};
/** The interval for reporting a waiting part to the controller. */
const ALARM_MS = 30_000;
/** There are only a few counts if there were fewer messages and exchanges than this, and fewer tokens. */
const FEW = 100;
/** Also the maximum change of the stored bytes, and of the bytes of events in messages. */
const FEW_BYTES = 262_144;
const RETRY_MS = 1_000;
/** The time to wait between two slices of a sweep, because there is other work for the part. */
const BETWEEN_SLICES_MS = 5;

export interface UpkeepDeps {
  readonly sweep: Sweep;
  readonly tokens: Pick<Tokens, 'settle'>;
  readonly traffic: TrafficStore;
  readonly noteStored: NoteStored;
  /** Redis's clock. */
  readonly nowMs: () => number;
  /** Tells the controller about a slot, e.g. `a:acc_…`. */
  readonly alarm: (slot: string) => void;
  /** Called when events have been removed by retention before all of their deliveries had ended. */
  readonly onExpired?: (swept: Pick<Swept, 'expired' | 'neverRouted'>) => void;
  /** There was a failure, and we will retry. */
  readonly onFailure?: NoteFailure;
  /** For tests. */
  readonly times?: Partial<typeof TIMES>;
}

/** The facts about a part that a message or an exchange contains. */
export interface Activity {
  /** The reason why the part is held back, as returned by an exchange. */
  readonly hold?: string | undefined;
  /** The version of its rows. */
  readonly version?: string;
  /** Of a message: its events, and the lanes with events that wait. If there are none, any number of events was stored. */
  readonly events?: readonly { readonly size?: number | undefined }[];
  readonly behind?: readonly unknown[];
}

export interface Upkeep {
  readonly start: () => void;
  /** Reports activity in the part. */
  readonly wake: (seen: Activity) => void;
  /** Resolves when all of the work has been finished. */
  readonly stop: () => Promise<void>;
}

function wrongClock(offsetMs: number): Error {
  const hours = Math.round(offsetMs / 3_600_000);
  return new Error(
    `the Redis clock differs from the clock of this machine by ${hours} hours, so no expired events are removed. Correct the clocks`,
  );
}

/** A job that is started when it is due. There are no concurrent runs. */
interface Job {
  readonly within: (delayMs: number) => void;
  readonly stop: () => Promise<void>;
}

/** `run` returns the time to wait until the job is due again (in milliseconds), or undefined. */
function createJob(run: () => Promise<number | undefined>, onError: (error: unknown) => void): Job {
  let cancel = () => {};
  let dueMs = Number.POSITIVE_INFINITY;
  let running: Promise<void> | undefined;
  let stopped = false;

  function within(delayMs: number): void {
    if (stopped) return;
    const atMs = performance.now() + delayMs;
    if (atMs >= dueMs) return;
    dueMs = atMs;
    cancel();
    if (running === undefined) cancel = systemClock.setTimer(begin, delayMs);
  }

  function begin(): void {
    dueMs = Number.POSITIVE_INFINITY;
    running = runOnce();
  }

  async function runOnce(): Promise<void> {
    let nextMs: number | undefined = RETRY_MS;
    try {
      nextMs = await run();
    } catch (error) {
      onError(error);
    }
    running = undefined;
    // Another run may have been requested in the meantime.
    const asked = dueMs - performance.now();
    dueMs = Number.POSITIVE_INFINITY;
    const next = Math.min(asked, nextMs ?? Number.POSITIVE_INFINITY);
    if (Number.isFinite(next)) within(Math.max(0, next));
  }

  return {
    within,
    async stop() {
      stopped = true;
      cancel();
      await running;
    },
  };
}

/** Returns the bytes of the events that a message says were stored. The events of an exchange were stored before. */
function storedBytesOf({ events = [], behind }: Activity): number {
  return behind === undefined ? 0 : events.reduce((sum, { size = 0 }) => sum + size, 0);
}

/**
 * Decides the time that the counts of a part may wait. The first ones after a quiet time wait for `foldMs`. As long as
 * there are only a few, this is doubled up to `mostFoldMs`.
 */
function createPace(foldMs: number, mostFoldMs: number) {
  let gapMs = foldMs;
  let begunMs = Number.NEGATIVE_INFINITY;
  let wokenMs = Number.NEGATIVE_INFINITY;
  const none = { wakes: 0, bytes: 0, isMuch: false };
  /** The activity since the last count began, and before that. */
  let since = none;
  let before = none;
  let last: { readonly used: number; readonly bytes: number } | undefined;

  return {
    /**
     * Returns the time that this activity may wait.
     *
     * @param isUnknown nobody knows yet how much there is to be counted
     * @param bytes of its events
     */
    note(isUnknown: boolean, bytes: number): number {
      const nowMs = performance.now();
      if (since.wakes === 0 && nowMs > begunMs + gapMs) gapMs = foldMs;
      wokenMs = nowMs;
      const wakes = since.wakes + 1;
      const sum = since.bytes + bytes;
      since = { wakes, bytes: sum, isMuch: since.isMuch || isUnknown || wakes >= FEW || sum > FEW_BYTES };
      if (since.isMuch) gapMs = foldMs;
      return Math.max(foldMs, begunMs + gapMs - nowMs);
    },
    /** Call this before the counts are read. */
    begin() {
      begunMs = performance.now();
      before = since;
      since = none;
    },
    /** Returns the time to wait until they are read again, if there may be more. */
    end(found: { readonly used: number; readonly bytes: number; readonly isLow: boolean }): number | undefined {
      const isFew =
        last !== undefined &&
        before.wakes > 0 &&
        !before.isMuch &&
        !since.isMuch &&
        !found.isLow &&
        found.used - last.used < FEW &&
        Math.abs(found.bytes - last.bytes) <= FEW_BYTES;
      gapMs = isFew ? Math.min(2 * gapMs, mostFoldMs) : foldMs;
      last = found;
      // For events that are routed to nobody, only one message is sent in this time (`notified` in log/ingest.lua). The
      // others are counted at its end.
      const endMs = wokenMs + foldMs;
      if (begunMs >= endMs) return undefined;
      // Timers can be a millisecond early.
      return Math.max(0, Math.ceil(Math.max(endMs, begunMs + gapMs) - performance.now()) + 1);
    },
    /** Returns true if something has waited for more than `foldMs`. */
    isLate: () => since.wakes > 0 && performance.now() - begunMs > foldMs,
  };
}

/**
 * Runs the background tasks for a part. The loop removes expired data, adds the counts to the account and the series,
 * records the stored bytes, and requests tokens. A single process is enough for each part, but it is safe if there are
 * several. In an idle part, only expired data causes commands.
 */
export function createUpkeep(deps: UpkeepDeps, part: Part): Upkeep {
  const { nowMs } = deps;
  const { foldMs, mostFoldMs, sweepMs, sweepActiveMs, shortMs, waitedMs, clockMs } = { ...TIMES, ...deps.times };
  const pace = createPace(foldMs, mostFoldMs);
  const state: SweepState = {};
  const source = { ...part, meta: partKeys(part).meta };
  let folded: string | undefined;
  let noted: Awaited<ReturnType<NoteStored>> | undefined;
  /** The reason why the part had to wait for tokens when it was checked last. */
  let waiting: 'no' | 'asked' | 'short' = 'no';
  let alarmedMs = Number.NEGATIVE_INFINITY;
  let version: string | undefined;
  let isStopping = false;
  const fail = (what: string) => (error: unknown) => deps.onFailure?.(error, what, part);

  const sweeping = createJob(async () => {
    while (!isStopping) {
      const answer = await deps.sweep(part, state);
      if (answer.answer === 'CLOCK') {
        fail('part could not be swept')(wrongClock(answer.offsetMs));
        return clockMs;
      }
      if (answer.answer !== 'OK') return undefined;
      if (answer.expired + answer.neverRouted > 0) deps.onExpired?.(answer);
      // The stored bytes may have changed.
      if (answer.more) counting.within(foldMs);
      if (!answer.more) return answer.dueInMs;
      await pause(BETWEEN_SLICES_MS);
    }
    return undefined;
  }, fail('part could not be swept'));

  function alarmOf(payer: string, isNews: boolean): void {
    if (payer === '' || (!isNews && nowMs() - alarmedMs < ALARM_MS)) return;
    alarmedMs = nowMs();
    deps.alarm(`a:${payer}`);
  }

  async function count(): Promise<number | undefined> {
    pace.begin();
    const settled = await deps.tokens.settle(part, nowMs());
    if (settled.answer === 'GONE') return undefined;
    if (settled.answer === 'OK') {
      if (settled.cleared) alarmOf(settled.payer, true);
      waiting = settled.waited ? 'asked' : 'no';
    } else {
      alarmOf(settled.payer, waiting !== 'short');
      waiting = 'short';
    }
    const { payer, counts, used, isLow } = settled;
    folded = await deps.traffic.fold({ ...source, counts: counts.traffic }, nowMs(), folded);
    noted = await deps.noteStored(part, { payer, bytes: counts.bytes }, noted);
    const nextMs = pace.end({ used, bytes: counts.bytes, isLow: isLow || waiting !== 'no' });
    if (waiting !== 'no') return waiting === 'asked' ? waitedMs : shortMs;
    return nextMs;
  }

  const countsFailed = fail('cannot report the counts of a part');
  const counting = createJob(count, countsFailed);

  return {
    start() {
      sweeping.within(0);
      counting.within(0);
    },
    wake(seen) {
      const isChanged = seen.version !== undefined && seen.version !== version;
      if (isChanged) version = seen.version;
      const isUnknown = seen.behind?.length === 0 && seen.events?.length === 0;
      const withinMs = pace.note(isChanged || isUnknown || seen.hold !== undefined, storedBytesOf(seen));
      // While it waits it is looked at often enough.
      counting.within(seen.hold === 'tokens' && waiting === 'no' ? 0 : withinMs);
      sweeping.within(isChanged ? sweepMs : sweepActiveMs);
    },
    async stop() {
      isStopping = true;
      await Promise.all([sweeping.stop(), counting.stop()]);
      // Nobody may take over the part for some time.
      if (pace.isLate()) await count().catch(countsFailed);
    },
  };
}
