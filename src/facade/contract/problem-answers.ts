import type { ServerResponse } from 'node:http';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { PROBLEM_CONTENT_TYPE, problem } from '../../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../../core/problems/problems.ts';
import { Refusal, type RefusalFacts } from '../../http/refusal.ts';
import type { Logger } from '../../telemetry/log.ts';
import { parseTraceparent } from '../../telemetry/tracing.ts';
import { BODY_BYTES } from './route.ts';

/** Seconds after which a retry may succeed. */
const RETRY_AFTER_SECONDS: Partial<Record<ProblemCode, string>> = {
  unavailable: '2',
  not_in_force: '2',
  overloaded: '1',
};

/** Problems for Fastify's own error codes. */
const OF_FASTIFY: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed_request',
  FST_ERR_NOT_FOUND: 'not_found',
  FST_ERR_MAX_PARAM_LENGTH: 'uri_too_long',
};

/** Sends a problem document (RFC 9457). */
export function sendProblem(reply: FastifyReply, code: ProblemCode, facts: RefusalFacts = {}): FastifyReply {
  const retryAfter = RETRY_AFTER_SECONDS[code];
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
  if (facts.headers !== undefined) reply.headers(facts.headers);
  // As bytes: to a JSON string Fastify would add a charset, which the media type does not have (RFC 9457, 6.1).
  const document = Buffer.from(JSON.stringify(problem(code, facts.detail, facts.errors)));
  return reply
    .code(PROBLEMS[code].status)
    .header('content-type', PROBLEM_CONTENT_TYPE)
    .header('cache-control', 'no-store')
    .send(document);
}

/** Sends a problem before Fastify has a reply: leaves the request unread and closes the connection. */
export function answerPlainly(response: ServerResponse, code: ProblemCode): void {
  const document = Buffer.from(JSON.stringify(problem(code)));
  response.writeHead(PROBLEMS[code].status, {
    'content-type': PROBLEM_CONTENT_TYPE,
    'content-length': document.length,
    'cache-control': 'no-store',
    connection: 'close',
  });
  response.end(document);
}

function traceOf({ headers }: FastifyRequest): { readonly traceId?: string } {
  const traceId = parseTraceparent(headers.traceparent as string | undefined)?.traceId;
  return traceId === undefined ? {} : { traceId };
}

/** Returns the error handler. It logs unexpected errors once, and answers them without details. */
export function createErrorHandler(log: Logger) {
  return (error: FastifyError | Refusal, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (error instanceof Refusal) {
      if (PROBLEMS[error.code].status >= 500) {
        log.warn(
          { code: error.code, err: error.cause, requestId: request.id, ...traceOf(request) },
          'call could not be answered',
        );
      }
      return sendProblem(reply, error.code, error.facts);
    }
    const known = OF_FASTIFY[error.code];
    if (known === 'body_too_large') {
      const most = (request.routeOptions.bodyLimit ?? BODY_BYTES).toLocaleString('en');
      return sendProblem(reply, known, { detail: `Send at most ${most} bytes to this call.` });
    }
    if (known !== undefined) return sendProblem(reply, known);
    if (error.statusCode !== undefined && error.statusCode < 500) return sendProblem(reply, 'malformed_request');
    log.error({ err: error, requestId: request.id, ...traceOf(request) }, 'call failed');
    return sendProblem(reply, 'internal');
  };
}
