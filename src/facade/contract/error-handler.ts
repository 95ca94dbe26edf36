import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { PROBLEMS, type ProblemCode } from '../../core/problems/problems.ts';
import { sendProblem } from '../../http/problem-answers.ts';
import { Refusal } from '../../http/refusal.ts';
import { traceOf } from '../../http/traced-requests.ts';
import { createFailureLog } from '../../telemetry/failure-log.ts';
import type { Logger } from '../../telemetry/log.ts';
import { BODY_BYTES } from './route.ts';

/** Maps Fastify error codes to problems. */
const OF_FASTIFY: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed_request',
  FST_ERR_MAX_PARAM_LENGTH: 'uri_too_long',
};

/** During an outage, anyone can make calls that fail. */
const REPEATED_FAILURES = { lines: 10, periodMs: 10_000 };

/**
 * Returns the error handler. An unexpected error is logged once. The response does not contain any details of it. If
 * too many calls fail, only some of them are logged, and most of them without a stack.
 */
export function createErrorHandler(log: Logger, nowMs = () => performance.now()) {
  const logFailure = createFailureLog({ repeats: REPEATED_FAILURES, nowMs });

  return (error: FastifyError | Refusal, request: FastifyRequest, reply: FastifyReply): void => {
    if (error instanceof Refusal) {
      if (PROBLEMS[error.code].status >= 500) {
        const fields = { code: error.code, requestId: request.id, ...traceOf(request) };
        logFailure(log, 'warn', error.cause, fields, 'call could not be answered');
      }
      return sendProblem(reply, error.code, error.facts);
    }
    const known = OF_FASTIFY[error.code];
    if (known === 'body_too_large') {
      const most = (request.routeOptions.bodyLimit ?? BODY_BYTES).toLocaleString('en');
      return sendProblem(reply, known, { detail: `Send at most ${most} bytes to this route.` });
    }
    if (known === 'unsupported_media_type') {
      return sendProblem(reply, known, { detail: 'Send a JSON body with the header Content-Type: application/json.' });
    }
    if (known !== undefined) return sendProblem(reply, known);
    if (error.statusCode !== undefined && error.statusCode < 500) return sendProblem(reply, 'malformed_request');
    logFailure(log, 'error', error, { requestId: request.id, ...traceOf(request) }, 'call failed');
    sendProblem(reply, 'internal');
  };
}
