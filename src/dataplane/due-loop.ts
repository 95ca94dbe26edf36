import type { HintIndex } from '../hints/hints.ts';
import { HINT_PARTITIONS } from '../redis/keys.ts';
import type { Logger } from '../telemetry/log.ts';
import { jittered } from '../time/backoff.ts';

export interface DueLoopOptions {
  readonly hints: Pick<HintIndex, 'pick' | 'settle' | 'listen' | 'kind'>;
  readonly nowMs: () => number;
  readonly log: Logger;
  /** The maximum number of members this process works on at once. */
  readonly concurrency: number;
  /**
   * The time for which a picked hint is leased to this process. After a crash, another process can take it over when
   * this time has passed.
   */
  readonly leaseMs: number;
  /**
   * Works on a member until there is nothing due any more. Resolves to the time at which it will be due again (in
   * milliseconds), or null.
   */
  readonly run: (member: string) => Promise<number | null>;
  /** Called if a member is due again while there is already work on it. */
  readonly poke?: (member: string) => void;
  /**
   * The maximum time between two checks of a partition. The limit bounds the delay after a lost message. An idle system
   * pays one read.
   */
  readonly sweepMs?: number;
  readonly token: () => string;
  /** Called if a turn of work has failed. The error is logged. The turn is retried later. */
  readonly onFailure?: () => void;
}

export interface DueLoop {
  readonly start: () => void;
  /** Checks all of the partitions immediately. Used if messages might have been lost. */
  readonly lookEverywhere: () => void;
  /** Stops picking new work and waits for whatever is still running. */
  readonly stop: () => Promise<void>;
}

/** The delay before failed work is retried. */
const RETRY_MS = 500;
/** The time after which a pick in progress no longer takes places from other partitions. */
const PICK_PATIENCE_MS = 500;

interface Working {
  /** The partition of this hint. */
  partition: number;
  token: string;
  /** True if the member was picked again while there was already work on it. */
  again: boolean;
  /** True if the hint was lowered after we have started to settle it. */
  lowered: boolean;
}

/**
 * Uses hints to find work that is due. There is only a single process working on a member at a time. Hints are leased
 * when picked and settled by compare-and-set when done, so a crash or a wake-up in between is never lost.
 */
export function createDueLoop(options: DueLoopOptions): DueLoop {
  const { hints, nowMs, log, run } = options;
  const sweepMs = options.sweepMs ?? 2_000;
  /** No partition is due later than this, unless the clock was set back. */
  const furthestMs = 2 * sweepMs;
  const working = new Map<string, Working>();
  const dueAt = Array.from({ length: HINT_PARTITIONS }, () => 0);
  const picking = Array.from({ length: HINT_PARTITIONS }, () => false);
  /** Partitions whose last pick was late or has failed. */
  const silent = Array.from({ length: HINT_PARTITIONS }, () => false);
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Number.POSITIVE_INFINITY;
  let stopped = true;
  let rotation = 0;
  /** Room available to picks in progress. */
  let reserved = 0;
  const idle: (() => void)[] = [];

  /** Ensures that the partition `p` will be checked at `ms` or earlier. */
  function arm(p: number, ms: number): void {
    if (ms < (dueAt[p] as number)) dueAt[p] = ms;
    schedule();
  }

  function schedule(): void {
    if (stopped || working.size + reserved >= options.concurrency) return;
    let soonest = Number.POSITIVE_INFINITY;
    for (let p = 0; p < HINT_PARTITIONS; p++) if (!picking[p]) soonest = Math.min(soonest, dueAt[p] as number);
    if (soonest === Number.POSITIVE_INFINITY || (soonest >= timerAt && timer !== undefined)) return;
    clearTimeout(timer);
    timerAt = soonest;
    const inMs = Math.max(0, Math.min(soonest - nowMs(), furthestMs));
    timer = inMs === 0 ? undefined : setTimeout(onTimer, inMs);
    if (inMs === 0) {
      timerAt = Number.POSITIVE_INFINITY;
      setImmediate(onTimer);
    }
  }

  function onTimer(): void {
    timer = undefined;
    timerAt = Number.POSITIVE_INFINITY;
    if (stopped) return;
    const now = nowMs();
    for (let i = 0; i < HINT_PARTITIONS; i++) {
      const p = (i + rotation) % HINT_PARTITIONS;
      const inMs = (dueAt[p] as number) - now;
      if (!picking[p] && (inMs <= 0 || inMs > furthestMs)) void look(p, now);
    }
    rotation++;
    schedule();
  }

  async function look(p: number, now: number): Promise<void> {
    const room = options.concurrency - working.size - reserved;
    if (room <= 0) return;
    const most = Math.min(room, 32);
    picking[p] = true;
    let own = silent[p] ? 0 : most;
    reserved += own;
    const release = () => {
      reserved -= own;
      own = 0;
    };
    let isLate = false;
    const patience = setTimeout(() => {
      isLate = true;
      release();
      schedule();
    }, PICK_PATIENCE_MS);
    dueAt[p] = now + jittered(sweepMs, Math.random);
    const token = options.token();
    try {
      const { members, nextMs } = await hints.pick(p, now, most, options.leaseMs, token);
      silent[p] = isLate;
      if (nextMs !== undefined && nextMs < (dueAt[p] as number)) dueAt[p] = nextMs;
      if (members.length === most) dueAt[p] = now;
      release();
      for (const member of members) {
        const hasPlace = working.has(member) || working.size + reserved < options.concurrency;
        if (stopped || !hasPlace) await giveBack(p, member, token);
        else take(p, member, token);
      }
    } catch (error) {
      log.debug({ err: error }, 'pick failed');
      silent[p] = true;
      dueAt[p] = nowMs() + 250;
    } finally {
      clearTimeout(patience);
      release();
      picking[p] = false;
      schedule();
      rest();
    }
  }

  /** Anything picked while stopping, or without a free place, becomes due for other processes immediately. */
  async function giveBack(p: number, member: string, token: string): Promise<void> {
    await hints.settle(p, member, token, nowMs());
  }

  /** Allows `stop` to return when all of the work has been finished. */
  function rest(): void {
    if (isIdle()) for (const done of idle.splice(0)) done();
  }

  const isIdle = () => working.size === 0 && !picking.includes(true);

  function take(p: number, member: string, token: string): void {
    const current = working.get(member);
    if (current !== undefined) {
      current.partition = p;
      current.token = token;
      current.again = true;
      options.poke?.(member);
      return;
    }
    const entry: Working = { partition: p, token, again: false, lowered: false };
    working.set(member, entry);
    void work(member, entry);
  }

  /**
   * Notifies members that are being worked on here, so they needn't be picked. For all others, the partition is
   * checked.
   */
  function onLowered(p: number, ms: number, members: readonly string[]): void {
    if (members.length === 0) arm(p, ms);
    for (const member of members) {
      const entry = working.get(member);
      if (entry?.partition !== p) {
        arm(p, ms);
        continue;
      }
      entry.lowered = true;
      options.poke?.(member);
    }
  }

  async function work(member: string, entry: Working): Promise<void> {
    let next: number | null = null;
    let settled = false;
    try {
      for (;;) {
        entry.again = false;
        let failed = false;
        try {
          next = stopped ? nowMs() : await run(member);
        } catch (error) {
          log.warn({ err: error, member }, 'work failed, tried again');
          options.onFailure?.();
          failed = true;
          // Keep holding it in the meantime. If the hint were released, a failing run would spin while its hint is
          // lowered all the time.
          await new Promise(resolve => setTimeout(resolve, RETRY_MS));
          next = nowMs();
        }
        // Became due while being worked on. We hold the lease on this hint, so nobody else would check before it
        // lapses.
        if (entry.again && !failed) continue;
        entry.again = false;
        entry.lowered = false;
        settled = await hints.settle(entry.partition, member, entry.token, next);
        if (!entry.again) break;
      }
    } catch (error) {
      // Once the lease of the hint lapses, somebody will pick it.
      log.debug({ err: error, member }, 'settle failed');
    } finally {
      working.delete(member);
      // Lowered while being worked on, i.e. still due and not leased to anybody.
      if (!settled || entry.lowered) arm(entry.partition, nowMs());
      // We'll check the partition again at that time. Other processes will notice this when they sweep the next time.
      else if (next !== null) arm(entry.partition, next);
      schedule();
      rest();
    }
  }

  return {
    start() {
      stopped = false;
      hints.listen(onLowered);
      schedule();
    },
    lookEverywhere() {
      for (let p = 0; p < HINT_PARTITIONS; p++) arm(p, 0);
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      if (!isIdle()) await new Promise<void>(resolve => idle.push(resolve));
    },
  };
}
