import type { ControlAudit } from '../../record/control-audit.ts';
import { createLimitedLog } from '../../telemetry/limited-log.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import type { Audit } from './audit.ts';
import type { AuditMetrics } from './audit-metrics.ts';
import type { Difference } from './drift.ts';
import type { GarbageCollector } from './garbage-collector.ts';

/**
 * The time between the start of one pass and the start of the next pass, in milliseconds. Up to 20% of jitter is added
 * to it. Combined with the second comparison, this guarantees that damage will be repaired within 65 seconds.
 */
const PASS_EVERY_MS = 48_000;
/** The delay before the second comparison, in milliseconds, which gives in-flight writes a chance to complete. */
const SECOND_COMPARISON_MS = 2_000;
/** The number of accounts in each batch. */
const ACCOUNTS_AT_ONCE = 500;
/** The number of passes in which the same work may fail. Redis may be unavailable for some time. */
const SILENT_FAILURES = 3;
/** The same failure can affect all tenants. */
const FAILURE_LINES = { lines: 3, periodMs: 600_000 };

export interface AuditPassDeps {
  readonly audit: Audit;
  readonly garbage: GarbageCollector;
  readonly readTenants: ControlAudit['readTenants'];
  readonly tenants: () => readonly string[];
  readonly accounts: () => Iterable<string>;
  /** Called at the end of each pass. */
  readonly onPass: () => void;
  readonly metrics: Pick<AuditMetrics, 'passed'>;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  readonly random?: () => number;
  readonly log: Pick<Logger, 'debug' | 'warn' | 'error'>;
}

function createAttempt({ clock, log }: Pick<AuditPassDeps, 'clock' | 'log'>) {
  /** The number of consecutive failures of the same work. */
  const failures = new Map<string, number>();
  const limited = createLimitedLog({ ...FAILURE_LINES, nowMs: clock.nowMs });
  return {
    /**
     * Runs `work` and returns its result. Returns undefined if it fails. Failed work will be retried in the next pass.
     */
    attempt: async <T>(what: string, work: () => Promise<T>): Promise<T | undefined> => {
      try {
        const result = await work();
        failures.delete(what);
        return result;
      } catch (err) {
        const count = (failures.get(what) ?? 0) + 1;
        failures.set(what, count);
        const line = [{ err, what }, 'the control state cannot be compared'] as const;
        if (count < SILENT_FAILURES) log.debug(...line);
        else limited(log, 'warn', ...line);
        return undefined;
      }
    },
    forget: () => failures.clear(),
  };
}

/**
 * Creates the pass that the leader runs at regular intervals. A pass checks all data in Redis, first for damage and
 * then for orphans.
 */
export function createAuditPass(deps: AuditPassDeps) {
  const { audit, clock, random = Math.random } = deps;
  let over = new AbortController();
  const { attempt, forget } = createAttempt(deps);

  async function pass(stop: AbortSignal): Promise<void> {
    const listed = await deps.readTenants();
    const suspects = new Map<string, { readonly found: Difference[]; readonly atMs: number }>();

    /** Repairs all suspects which are old enough. Also called during a pass, because a pass can take a long time. */
    async function repair(accounts: ReadonlyMap<string, Difference[]> = new Map()): Promise<void> {
      const due = [...suspects].filter(([, { atMs }]) => clock.nowMs() - atMs >= SECOND_COMPARISON_MS);
      if (due.length + accounts.size === 0) return;
      for (const [name] of due) suspects.delete(name);
      const tenants = new Map(due.map(([name, { found }]) => [name, found]));
      await attempt('repair', async () => audit.repair({ tenants, accounts }, await deps.readTenants()));
    }

    for (const name of deps.tenants()) {
      if (stop.aborted) return;
      const found = await attempt(name, () => audit.compareTenant(name, listed));
      if (found !== undefined && found.length > 0) {
        suspects.set(name, { found, atMs: clock.nowMs() });
      }
      await repair();
    }
    const accounts = new Map<string, Difference[]>();
    const names = [...deps.accounts()];
    for (let at = 0; at < names.length; at += ACCOUNTS_AT_ONCE) {
      const part = names.slice(at, at + ACCOUNTS_AT_ONCE);
      for (const [name, found] of (await attempt('accounts', () => audit.compareAccounts(part))) ?? []) {
        accounts.set(name, found);
      }
    }
    if (suspects.size + accounts.size > 0) {
      await sleep(clock, SECOND_COMPARISON_MS, stop);
      if (stop.aborted) return;
      await repair(accounts);
    }
    if (!stop.aborted) await attempt('garbage collection', () => deps.garbage.pass(listed));
  }

  async function run(stop: AbortSignal): Promise<void> {
    let nextMs = clock.nowMs();
    for (;;) {
      nextMs = Math.max(clock.nowMs() + 1_000, nextMs + PASS_EVERY_MS * (0.8 + 0.4 * random()));
      await sleep(clock, nextMs - clock.nowMs(), stop);
      if (stop.aborted) return;
      nextMs = clock.nowMs();
      await attempt('pass', () => pass(stop));
      if (stop.aborted) return;
      deps.metrics.passed((clock.nowMs() - nextMs) / 1_000);
      deps.onPass();
    }
  }

  return {
    /** Starts running passes again. Passes continue to run until the signal is aborted. */
    begin(signal: AbortSignal): void {
      over.abort();
      over = new AbortController();
      forget();
      deps.garbage.forget();
      void run(AbortSignal.any([signal, over.signal]));
    },
  };
}

export type AuditPass = ReturnType<typeof createAuditPass>;
