import { MUST_BE_CURSOR, RunId, RunReportQuery } from '../../../api/sandbox.ts';
import { cursorOf, type ListName, positionIn } from '../../../core/ids/list-cursor.ts';
import { withDeadline } from '../../../time/deadline.ts';
import type { NoTurn } from '../../../time/fair-turns.ts';
import type { EventReply, EventRequest, KeyedRequest } from '../event-request.ts';
import { unknownParameter } from './sandbox-query.ts';
import type { SandboxRouteOptions } from './sandbox-route.ts';
import { type SandboxTurns, TOO_MANY } from './sandbox-turns.ts';

export interface RunRequest extends KeyedRequest {
  readonly params: { readonly tenant: string; readonly run: string };
}

/**
 * Creates the handler that is used for `GET /events/sandbox/{tenant}/runs/{runId}`. Checks are made in this order: path
 * (404), query (422), key (401), turn (429), run (404).
 */
export function createRunReportRoute(
  options: Pick<SandboxRouteOptions, 'admission' | 'sandbox' | 'answers' | 'limits' | 'onFailure' | 'onError'> & {
    readonly turns: SandboxTurns;
  },
): (request: RunRequest, reply: EventReply) => void {
  const { admission, sandbox, answers, limits, turns, onFailure, onError } = options;

  async function answer(request: RunRequest, reply: EventReply, startedMs: number, page: RunPage): Promise<void> {
    const { tenant, run } = request.params;
    const list = listOf(request);
    const cursor = page.cursor === undefined ? undefined : positionIn(list, page.cursor);
    const read = () => sandbox.report(tenant, run, { ...page, cursor });
    let report: Awaited<ReturnType<typeof read>> | NoTurn;
    try {
      // The turn and the report can each take this long. A report that takes longer still has its turn.
      report = await withDeadline(2 * limits.ingestTimeoutMs, () => turns.run(tenant, reply.raw, read));
    } catch (error) {
      onFailure('sandbox', error);
      return answers.sendProblem(reply, startedMs, 'unavailable');
    }
    if (report === 'aborted') return answers.abandon(startedMs);
    if (report === 'full' || report === 'late') return answers.sendProblem(reply, startedMs, 'rate_limited', TOO_MANY);
    if (report === undefined) return answers.sendProblem(reply, startedMs, 'unknown_run');
    const nextCursor = cursorOf(list, report.nextCursor ?? undefined);
    answers.sendJson(reply, startedMs, 200, { ...report, nextCursor });
  }

  return (request, reply) => {
    const startedMs = performance.now();
    // Runs don't belong to a queue, so check the path using a queue name that is always valid.
    const { tenant, run } = request.params;
    const { raw, headers } = request;
    const ofQueue: EventRequest = { raw, headers, params: { tenant, queue: 'runs' } };
    if (!admission.checkPath(ofQueue, reply, startedMs)) return;
    const { searchParams } = new URL(request.raw.url ?? '', 'http://h');
    const known = Object.keys(RunReportQuery.shape);
    const query = RunReportQuery.safeParse(Object.fromEntries(searchParams));
    const errors = [...searchParams.keys()]
      .filter(name => !known.includes(name))
      .map(name => unknownParameter(name, known));
    for (const { path, message } of query.error?.issues ?? [])
      errors.push({ parameter: String(path[0]), detail: message });
    for (const name of known)
      if (searchParams.getAll(name).length > 1) errors.push({ parameter: name, detail: 'may be given once' });
    const { cursor } = query.data ?? {};
    if (cursor !== undefined && positionIn(listOf(request), cursor) === undefined)
      errors.push({ parameter: 'cursor', detail: MUST_BE_CURSOR });
    if (errors.length > 0 || !query.success) {
      return answers.sendProblem(reply, startedMs, 'invalid_request', { errors });
    }
    admission.admitKey(ofQueue, reply, startedMs, () => {
      if (!RunId.safeParse(run).success) return answers.sendProblem(reply, startedMs, 'unknown_run');
      answer(request, reply, startedMs, query.data).catch((error: unknown) => onError(reply, startedMs, error));
    });
  };
}

/** Returns the name of the list of events of a run. */
const listOf = ({ params: { tenant, run } }: RunRequest): ListName => ['run', tenant, run];

type RunPage = Parameters<SandboxRouteOptions['sandbox']['report']>[2];
