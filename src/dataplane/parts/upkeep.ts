import { setTimeout as pause } from 'node:timers/promises';
import { type Part, partKeys } from '../../part/keys.ts';
import type { NoteStored } from '../../part/stored/stored-bytes.ts';
import type { SweepState } from '../../part/sweep/due.ts';
import type { Sweep, Swept } from '../../part/sweep/sweep.ts';
import type { Tokens } from '../../part/tokens/tokens.ts';
import type { TrafficStore } from '../../series/traffic-store.ts';
import type { NoteFailure } from '../dispatcher/part-failures.ts';

const TIMES = {
  /** How often the part counts are added to its account and to the series. */
  foldMs: 5_000,
  /** How long to wait until a part is swept after its settings or its subscriptions have changed. */
  sweepMs: 10_000,
  /** How often an active part is swept. Nothing that is stored in the meantime is removed earlier than this. */
  sweepActiveMs: 300_000,
  /** How often to request tokens for a part if its account does not have any. */
  shortMs: 1_500,
  /** How often to check if there are enough tokens for a part. */
  waitedMs: 250,
  /** How often to check if the clocks of Redis and of this machine agree again. */
  clockMs: 60_000,
};
/** The interval for reporting a waiting part to the controller. */
const ALARM_MS = 30_000;
const RETRY_MS = 1_000;
/** How long to wait between two slices of a sweep, because there is other work for the part. */
const BETWEEN_SLICES_MS = 5;
/** The maximum delay supported by `setTimeout`. If a part is due later than this, it is also checked earlier. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

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
  /** Routing was stopped because there are no tokens, or because the account is missing. */
  readonly onHeld?: (cause: 'SHORT' | 'CLOSED') => void;
  /** There was a failure, and we will retry. */
  readonly onFailure?: NoteFailure;
  /** For tests. */
  readonly times?: Partial<typeof TIMES>;
}

/** What a message or an exchange says about the part. */
export interface Activity {
  /** The reason why the part is held back, as returned by an exchange. */
  readonly hold?: string | undefined;
  /** The version of its rows. */
  readonly version?: string;
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

/** `run` returns how long to wait until the job is due again (in milliseconds), or undefined. */
function createJob(run: () => Promise<number | undefined>, onError: (error: unknown) => void): Job {
  let timer: NodeJS.Timeout | undefined;
  let dueMs = Number.POSITIVE_INFINITY;
  let running: Promise<void> | undefined;
  let stopped = false;

  function within(delayMs: number): void {
    if (stopped) return;
    const atMs = performance.now() + delayMs;
    if (atMs >= dueMs) return;
    dueMs = atMs;
    clearTimeout(timer);
    if (running === undefined) timer = setTimeout(begin, Math.min(LONGEST_WAIT_MS, delayMs));
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
    // It may have been requested again in the meantime.
    const asked = dueMs - performance.now();
    dueMs = Number.POSITIVE_INFINITY;
    const next = Math.min(asked, nextMs ?? Number.POSITIVE_INFINITY);
    if (Number.isFinite(next)) within(Math.max(0, next));
  }

  return {
    within,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/**
 * Runs the background tasks for a part. It removes expired data, adds the counts to the account and the series, records
 * the stored bytes, and requests tokens. A single process is enough for each part, but it is safe if there are several.
 * In an idle part, only expired data causes commands.
 */
export function createUpkeep(deps: UpkeepDeps, part: Part): Upkeep {
  const { nowMs } = deps;
  const { foldMs, sweepMs, sweepActiveMs, shortMs, waitedMs, clockMs } = { ...TIMES, ...deps.times };
  const state: SweepState = {};
  const source = { ...part, meta: partKeys(part).meta };
  let folded: string | undefined;
  let noted: Awaited<ReturnType<NoteStored>> | undefined;
  /** The reason why the part had to wait for tokens when it was checked last. */
  let waiting: 'no' | 'asked' | 'short' = 'no';
  /** The time of the last activity, using the monotonic clock. */
  let wokenMs = Number.NEGATIVE_INFINITY;
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

  const counting = createJob(async () => {
    // Before the counts are read.
    const begunMs = performance.now();
    const settled = await deps.tokens.settle(part, nowMs());
    if (settled.answer === 'GONE') return undefined;
    if (settled.answer === 'OK') {
      if (settled.cleared) alarmOf(settled.payer, true);
      waiting = settled.waited ? 'asked' : 'no';
    } else {
      deps.onHeld?.(settled.answer);
      alarmOf(settled.payer, waiting !== 'short');
      waiting = 'short';
    }
    const { payer, counts } = settled;
    folded = await deps.traffic.fold({ ...source, counts: counts.traffic }, nowMs(), folded);
    noted = await deps.noteStored(part, { payer, bytes: counts.bytes }, noted);
    if (waiting !== 'no') return waiting === 'asked' ? waitedMs : shortMs;
    // For events that are routed to nobody, only one message is sent in this time (`notified` in log/ingest.lua). The
    // others are counted at its end.
    const endMs = wokenMs + foldMs;
    // Timers can be a millisecond early.
    return begunMs < endMs ? Math.max(0, Math.ceil(endMs - performance.now()) + 1) : undefined;
  }, fail('cannot report the counts of a part'));

  return {
    start() {
      sweeping.within(0);
      counting.within(0);
    },
    wake(seen) {
      wokenMs = performance.now();
      // While it waits it is looked at often enough.
      counting.within(seen.hold === 'tokens' && waiting === 'no' ? 0 : foldMs);
      const isChanged = seen.version !== undefined && seen.version !== version;
      if (isChanged) version = seen.version;
      sweeping.within(isChanged ? sweepMs : sweepActiveMs);
    },
    async stop() {
      isStopping = true;
      await Promise.all([sweeping.stop(), counting.stop()]);
    },
  };
}
