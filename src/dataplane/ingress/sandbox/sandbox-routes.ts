import { randomFillSync } from 'node:crypto';
import { systemClock } from '../../../time/clock.ts';
import { createAdmission } from '../admission.ts';
import { createAnswers } from '../answers.ts';
import type { EventParams } from '../event-request.ts';
import { createByteBudget } from '../request-body.ts';
import type { AddRoutes } from '../server.ts';
import { createEventIds, createRandom40 } from './event-id.ts';
import { createRunReportRoute, type RunRequest } from './run-report-route.ts';
import { createSandboxMetrics } from './sandbox-metrics.ts';
import { createSandboxRoute, type SandboxDesk } from './sandbox-route.ts';
import { createSandboxTurns, OF_EVENTS, OF_REPORTS } from './sandbox-turns.ts';

/**
 * Creates all routes of the sandbox. The routes use separate metrics, memory, and responses, so that the sandbox does
 * not affect production.
 */
export function createSandboxRoutes(sandbox: SandboxDesk): AddRoutes {
  return ({ app, registry, endsConnection, ...shared }) => {
    const answers = createAnswers(createSandboxMetrics(registry), endsConnection);
    const options = {
      ...shared,
      sandbox,
      answers,
      admission: createAdmission({ ...shared, senderLimits: shared.senderLimits.withOwnSenders(), answers }),
      budget: createByteBudget(shared.limits.sandboxHeldBytes),
      nextEventId: createEventIds(shared.nowMs, createRandom40(randomFillSync)),
    };
    const turns = (of: typeof OF_EVENTS) => createSandboxTurns(of, shared.limits.ingestTimeoutMs, systemClock);
    const publish = createSandboxRoute({ ...options, turns: turns(OF_EVENTS) });
    const report = createRunReportRoute({ ...options, turns: turns(OF_REPORTS) });
    app.post<{ Params: EventParams }>('/events/sandbox/:tenant/:queue', publish);
    app.get<{ Params: RunRequest['params'] }>('/events/sandbox/:tenant/runs/:run', report);
  };
}
