import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { PROBLEM_CONTENT_TYPE, problem } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';
import type { RefusalFacts } from './refusal.ts';

/**
 * The number of seconds after which a retry may succeed. Long enough for a failover to start, or for a short restart to
 * finish.
 */
const RETRY_AFTER_SECONDS: Partial<Record<ProblemCode, string>> = {
  unavailable: '2',
  not_in_force: '2',
  overloaded: '1',
  queue_full: '30',
  storage_pressure: '30',
  storage_limit: '30',
};

/** A problem document (RFC 9457), and its headers without the length. */
interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly document: Buffer;
}

export function problemAnswer(code: ProblemCode, facts: RefusalFacts = {}): ProblemAnswer {
  const retryAfter = RETRY_AFTER_SECONDS[code];
  return {
    status: PROBLEMS[code].status,
    headers: {
      ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
      ...facts.headers,
      'content-type': PROBLEM_CONTENT_TYPE,
      'cache-control': 'no-store',
    },
    document: Buffer.from(JSON.stringify(problem(code, facts.detail, facts.errors))),
  };
}

/** Sends a problem document. */
export function sendProblem(reply: FastifyReply, code: ProblemCode, facts?: RefusalFacts): void {
  const { status, headers, document } = problemAnswer(code, facts);
  // Send bytes because Fastify would add a charset to a JSON string. This media type does not support a charset (RFC
  // 9457, 6.1).
  reply.code(status).headers(headers).send(document);
}

/**
 * Sends a problem if there is no Fastify reply yet and returns the status. We don't read the request, and by default,
 * we close the connection.
 */
export function answerPlainly(
  response: ServerResponse,
  code: ProblemCode,
  { detail, headers = { connection: 'close' } }: Pick<RefusalFacts, 'detail' | 'headers'> = {},
): number {
  const { status } = PROBLEMS[code];
  const document = Buffer.from(JSON.stringify(problem(code, detail)));
  response.writeHead(status, {
    'content-type': PROBLEM_CONTENT_TYPE,
    'content-length': document.length,
    'cache-control': 'no-store',
    ...headers,
  });
  response.end(document);
  return status;
}
