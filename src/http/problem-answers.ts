import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { PROBLEM_CONTENT_TYPE, problem } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';
import type { RefusalFacts } from './refusal.ts';

/** Seconds after which a retry may succeed: a failover is under way by then, and a restart goes unnoticed. */
const RETRY_AFTER_SECONDS: Partial<Record<ProblemCode, string>> = {
  unavailable: '2',
  not_in_force: '2',
  overloaded: '1',
  queue_full: '30',
};

/** Sends a problem document (RFC 9457). */
export function sendProblem(reply: FastifyReply, code: ProblemCode, facts: RefusalFacts = {}): void {
  const retryAfter = RETRY_AFTER_SECONDS[code];
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
  if (facts.headers !== undefined) reply.headers(facts.headers);
  // As bytes: to a JSON string Fastify would add a charset, which the media type does not have (RFC 9457, 6.1).
  const document = Buffer.from(JSON.stringify(problem(code, facts.detail, facts.errors)));
  reply
    .code(PROBLEMS[code].status)
    .header('content-type', PROBLEM_CONTENT_TYPE)
    .header('cache-control', 'no-store')
    .send(document);
}

/** Sends a problem before Fastify has a reply. Leaves the request unread, and closes the connection. Returns the status. */
export function answerPlainly(response: ServerResponse, code: ProblemCode): number {
  const { status } = PROBLEMS[code];
  const document = Buffer.from(JSON.stringify(problem(code)));
  response.writeHead(status, {
    'content-type': PROBLEM_CONTENT_TYPE,
    'content-length': document.length,
    'cache-control': 'no-store',
    connection: 'close',
  });
  response.end(document);
  return status;
}
