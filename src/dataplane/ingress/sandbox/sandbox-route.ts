import type { RunReport } from '../../../api/sandbox.ts';
import type { Simulation } from '../../../core/delivery/simulation.ts';
import { extractContext } from '../../../core/events/context-headers.ts';
import type { SandboxOutcome } from '../../../part/sandbox/sandbox-store.ts';
import { withDeadline } from '../../../time/deadline.ts';
import type { NoTurn } from '../../../time/fair-turns.ts';
import type { Admission } from '../admission.ts';
import type { Answers } from '../answers.ts';
import { createBodyReceiver } from '../body-receiver.ts';
import type { EventReply, EventRequest } from '../event-request.ts';
import { createIngestItem } from '../ingest-item.ts';
import type { IngressLimits } from '../limits.ts';
import type { MemoryStop } from '../memory/memory-stop.ts';
import type { KnownQueue, QueueCache } from '../queue-cache.ts';
import type { ByteBudget } from '../request-body.ts';
import type { IngestItem, QueueConfig } from '../store.ts';
import { readSandboxQuery, type SandboxRequest } from './sandbox-query.ts';
import { type SandboxTurns, TOO_MANY } from './sandbox-turns.ts';

/** SandboxDesk is the part of the sandbox used by the ingress. If a promise is rejected, it is unavailable. */
export interface SandboxDesk {
  /** Stores an event in a run and ensures that the run will be processed. */
  readonly publish: (
    tenant: string,
    queue: string,
    run: string,
    config: QueueConfig,
    event: IngestItem & { readonly id: string; readonly simulation: Simulation },
  ) => Promise<SandboxOutcome>;
  /** If the run does not exist, or has ended, this returns undefined. */
  readonly report: (
    tenant: string,
    run: string,
    page: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  ) => Promise<RunReport | undefined>;
}

export interface SandboxRouteOptions {
  readonly admission: Admission;
  readonly queues: QueueCache;
  readonly sandbox: SandboxDesk;
  readonly memory: Pick<MemoryStop, 'isFull'>;
  /** Memory budget for the sandbox, kept separate so that sandbox requests can't use production memory. */
  readonly budget: ByteBudget;
  readonly answers: Answers;
  readonly limits: IngressLimits;
  readonly nextEventId: () => string;
  readonly nowMs: () => number;
  readonly onFailure: (operation: string, error: unknown) => void;
  readonly onError: (reply: EventReply, startedMs: number, error: unknown) => void;
}

/**
 * Creates the handler that is used for `POST /events/sandbox/{tenant}/{queue}`. Makes the same checks as the production
 * route, in the same order, except that sandbox parameters are read here (422) instead of refused. When the event has
 * been stored in the run, the response is 202 `{id, duplicate, groupKey, sandbox, runId, run}`.
 */
export function createSandboxRoute(
  options: SandboxRouteOptions & { readonly turns: SandboxTurns },
): (request: EventRequest, reply: EventReply) => void {
  const { admission, queues, sandbox, memory, budget, answers, limits, turns, nextEventId, onFailure, onError } =
    options;
  // The runs are distributed over all masters.
  const refusalOf = () => (memory.isFull() ? 'full' : undefined);
  const receiveBody = createBodyReceiver({ refusalOf, admission, budget, answers, bodyBytes: limits.bodyBytes });

  function handle(request: EventRequest, reply: EventReply): void {
    const startedMs = performance.now();
    if (!admission.checkPath(request, reply, startedMs)) return;
    const asked = readSandboxQuery(request.raw.url ?? '');
    if ('errors' in asked) return answers.sendProblem(reply, startedMs, 'invalid_request', { errors: asked.errors });
    admission.admit(request, reply, startedMs, (known, fresh) => {
      receiveBody(request, reply, startedMs, known, (body, holding) => {
        accept(request, reply, startedMs, asked, body, fresh ? known : undefined)
          .catch((error: unknown) => onError(reply, startedMs, error))
          .finally(holding.release);
      });
    });
  }

  async function accept(
    request: EventRequest,
    reply: EventReply,
    startedMs: number,
    asked: SandboxRequest,
    body: Buffer,
    read: KnownQueue | undefined,
  ): Promise<void> {
    const { tenant, queue } = request.params;
    // We don't want to use a cached configuration here. The production route reads the queue before it refuses an
    // event. The store compares the versions.
    const known = read ?? (await queues.read(tenant, queue));
    if (known === 'unavailable') return answers.sendProblem(reply, startedMs, 'unavailable');
    if (known === null) return answers.sendProblem(reply, startedMs, 'unknown_queue');
    if (known.config.state === 'closing') return answers.sendProblem(reply, startedMs, 'stream_closing');
    const { headers, rawHeaders } = request.raw;
    const context = extractContext(known.rules, { headers, rawHeaders, body });
    if ('code' in context) {
      return answers.sendProblem(reply, startedMs, context.code, context);
    }
    const id = context.id ?? nextEventId();
    const run = asked.runId ?? `run_${nextEventId().slice('evt_'.length)}`;
    const event = { ...createIngestItem(id, context, headers, body), simulation: asked.simulation };
    const publish = () => sandbox.publish(tenant, queue, run, known.config, event);
    let outcome: SandboxOutcome | NoTurn;
    try {
      // The turn and the event can each take this long. An event that takes longer still has its turn.
      outcome = await withDeadline(2 * limits.ingestTimeoutMs, () => turns.run(tenant, reply.raw, publish));
    } catch (error) {
      onFailure('sandbox', error);
      return answers.sendProblem(reply, startedMs, 'unavailable');
    }
    if (outcome === 'aborted') return answers.abandon(startedMs);
    if (outcome === 'full' || outcome === 'late') {
      return answers.sendProblem(reply, startedMs, 'rate_limited', TOO_MANY);
    }
    settle(reply, startedMs, outcome, {
      id,
      groupKey: context.groupKey ?? null,
      run,
      path: `/events/sandbox/${tenant}/runs/${run}`,
    });
  }

  function settle(
    reply: EventReply,
    startedMs: number,
    outcome: SandboxOutcome,
    {
      id,
      groupKey,
      run,
      path,
    }: { readonly id: string; readonly groupKey: string | null; readonly run: string; readonly path: string },
  ): void {
    switch (outcome.answer) {
      case 'OK':
      case 'DUP': {
        const duplicate = outcome.answer === 'DUP';
        return answers.sendJson(reply, startedMs, 202, {
          id,
          duplicate,
          groupKey,
          sandbox: true,
          runId: run,
          run: path,
        });
      }
      case 'RUN_FULL':
      case 'FULL':
        return answers.sendProblem(reply, startedMs, 'sandbox_run_full');
      case 'SPENT': {
        const seconds = Math.max(1, Math.ceil((outcome.untilMs - options.nowMs()) / 1_000));
        return answers.sendProblem(reply, startedMs, 'sandbox_spent', { headers: { 'retry-after': `${seconds}` } });
      }
      // The copy of the queue has changed between the two steps. The next attempt creates the copy again.
      case 'STALE':
      case 'CLOSED':
      case 'GONE':
        return answers.sendProblem(reply, startedMs, 'unavailable');
      default:
        outcome satisfies never;
    }
  }

  return handle;
}
