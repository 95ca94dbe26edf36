import type { AddressInfo } from 'node:net';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify';
import type { ProblemCode } from '../core/problems/problems.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { createAllowedMethods } from './allowed-methods.ts';
import { answerPlainly } from './problem-answers.ts';
import { serveProblemPages } from './problem-pages.ts';
import { answerProtocolError } from './protocol-errors.ts';
import type { Refusal, RefusalFacts } from './refusal.ts';
import { traceRequests } from './traced-requests.ts';

/** Limits of an HTTP server. Sizes in bytes, times in milliseconds. */
export interface HttpLimits {
  /** All headers of a request. */
  readonly headerBytes: number;
  readonly headersTimeoutMs: number;
  /** Maximum time to receive a request. */
  readonly requestTimeoutMs: number;
  /** Maximum silence on a connection; longer than the longest long poll. */
  readonly connectionTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** Time after which `close` cuts off requests in progress. */
  readonly drainTimeoutMs: number;
}

/** An HTTP server that answers every failure with a problem document. */
export interface HttpServer {
  /** For routes, before `listen`. */
  readonly app: FastifyInstance;
  /** Answers a request without a route: 404, or 405 if the path has other methods. */
  readonly answerUnrouted: (request: FastifyRequest, reply: FastifyReply) => void;
  /** Returns whether answers must ask clients to reconnect elsewhere (`Connection: close`). */
  readonly isDraining: () => boolean;
  /** Resolves with the listening port; `port` 0 takes a free one. */
  readonly listen: (port: number, host: string) => Promise<number>;
  /** Keeps serving, and asks clients to reconnect elsewhere. */
  readonly drain: () => void;
  /** Accepts no new connections, finishes requests in progress, and cuts off the rest after `drainTimeoutMs`. */
  readonly close: () => Promise<void>;
}

interface HttpServerOptions {
  readonly limits: HttpLimits;
  readonly tracing?: Tracing | undefined;
  readonly fastify?: Pick<FastifyServerOptions, 'bodyLimit' | 'genReqId' | 'requestIdHeader' | 'routerOptions'>;
  readonly requireHostHeader?: boolean;
  /** Matches the paths that routes may have; others get 404, never 405. Default: all. */
  readonly pathPattern?: RegExp;
  /** Returns what to add to a 404 for this path. */
  readonly factsOfNoRoute: (path: string) => RefusalFacts;
  readonly sendProblem: (reply: FastifyReply, code: ProblemCode, facts?: RefusalFacts) => void;
  readonly onError: (error: FastifyError | Refusal, request: FastifyRequest, reply: FastifyReply) => void;
  /** Called for each answer that is sent before there is a reply. */
  readonly onPlainAnswer?: (status: number) => void;
}

/** Fastify's errors for requests without a route. It checks the content type of a QUERY before it looks for one. */
const UNROUTED: readonly string[] = ['FST_ERR_NOT_FOUND', 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE'];

/** Creates a server with the pages of the problems, and without other routes. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { limits, tracing, pathPattern = /^/, sendProblem, onPlainAnswer = () => undefined } = options;
  const allowed = createAllowedMethods();
  let draining = false;

  function answerUnrouted(request: FastifyRequest, reply: FastifyReply): void {
    const path = (request.raw.url ?? '').replace(/[?#].*$/s, '');
    const allow = pathPattern.test(path) ? allowed.find(path) : undefined;
    if (allow === undefined) sendProblem(reply, 'not_found', options.factsOfNoRoute(path));
    else sendProblem(reply, 'method_not_allowed', { headers: { allow } });
  }

  function answerError(error: FastifyError | Refusal, request: FastifyRequest, reply: FastifyReply): void {
    if (UNROUTED.includes(error.code)) answerUnrouted(request, reply);
    else options.onError(error, request, reply);
  }

  const app = Fastify({
    ...options.fastify,
    logger: false,
    // Fastify's default for both is none, which lets a sender hold a connection forever.
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.connectionTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // Finish requests that arrived before closing began.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    http: {
      requireHostHeader: options.requireHostHeader ?? true,
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, limits.headersTimeoutMs),
    },
    clientErrorHandler: (error, socket) => answerProtocolError(error, socket, onPlainAnswer),
    frameworkErrors: answerError,
  });
  if (tracing !== undefined) traceRequests(app, tracing);
  app.addHook('onRoute', route => allowed.add(route.method, route.url));
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(answerUnrouted);
  serveProblemPages(app);
  // Node would answer 417 without a body.
  app.server.on('checkExpectation', (_request, response) =>
    onPlainAnswer(answerPlainly(response, 'expectation_failed')),
  );

  return {
    app,
    answerUnrouted,
    isDraining: () => draining,
    async listen(port, host) {
      await app.listen({ port, host });
      return (app.server.address() as AddressInfo).port;
    },
    drain() {
      draining = true;
    },
    async close() {
      draining = true;
      const cut = setTimeout(() => app.server.closeAllConnections(), limits.drainTimeoutMs);
      // Node closes idle connections only when closing begins. Others become idle later.
      const sweep = setInterval(() => app.server.closeIdleConnections(), 50);
      try {
        await app.close();
      } finally {
        clearTimeout(cut);
        clearInterval(sweep);
      }
    },
  };
}
