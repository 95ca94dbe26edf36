import type { HintIndex } from '../../hints/hints.ts';
import { createSandboxStore, type SandboxLimits } from '../../part/sandbox/sandbox-store.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { SandboxDesk } from '../ingress/sandbox/sandbox-route.ts';
import { createRunReports } from './run-report.ts';
import { runMember } from './run-view.ts';

/**
 * Creates the functions that ingress uses for the sandbox. The functions store events in a run and schedule the run.
 */
export function createSandboxDesk(deps: {
  readonly redis: RedisClient;
  /** Schedules runs in the hint index. */
  readonly lower: HintIndex['lower'];
  readonly nowMs: () => number;
  readonly limits?: SandboxLimits;
}): SandboxDesk {
  const { redis, lower, nowMs } = deps;
  const store = createSandboxStore(redis, nowMs, deps.limits);
  const reports = createRunReports(redis, nowMs, deps.limits);
  const wake = (tenant: string, run: string) => lower([{ member: runMember(tenant, run), dueMs: nowMs() }]);
  return {
    async publish(tenant, queue, run, config, event) {
      const outcome = await store.ingest(tenant, queue, run, config, event);
      // Must happen after the event is stored and before we answer. Also needed for duplicates, because the process
      // that has handled the first event may have crashed in between.
      if (outcome.answer === 'OK' || outcome.answer === 'DUP') await wake(tenant, run);
      return outcome;
    },
    async report(tenant, run, page) {
      const report = await reports.read(tenant, run, page);
      // If a run is waiting for a gate, it is not polled. Schedule the run here, so that reading the report causes its
      // gate to be checked.
      const waits = report?.data.some(({ integrations }) => integrations.some(({ verdict }) => verdict === 'waiting'));
      if (report !== undefined && (waits || report.totals.pending > 0)) await wake(tenant, run);
      return report;
    },
  };
}
