import type { RedisClient } from '../../redis/client.ts';
import type { HintIndex } from '../../redis/hints.ts';
import { createSandboxStore, type SandboxLimits } from '../../redis/sandbox-store.ts';
import type { SandboxDesk } from '../ingress/sandbox-route.ts';
import { createRunReports } from './run-report.ts';
import { runMember } from './run-view.ts';

/** The sandbox as ingress needs it: what it takes in, somebody works on soon. */
export function createSandboxDesk(deps: {
  readonly redis: RedisClient;
  /** Of runs. */
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
      // After it is stored, and before anybody is told; also for a duplicate, whose first sender may have died before.
      if (outcome.answer === 'OK' || outcome.answer === 'DUP') await wake(tenant, run);
      return outcome;
    },
    async report(tenant, run, page) {
      const report = await reports.read(tenant, run, page);
      // What waits for a gate is not polled: whoever looks at the run makes it look at the gate.
      const waits = report?.data.some(({ integrations }) => integrations.some(({ verdict }) => verdict === 'waiting'));
      if (report !== undefined && (waits || report.totals.pending > 0)) await wake(tenant, run);
      return report;
    },
  };
}
