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

/** The limits of an HTTP server. All sizes are in bytes and all times are in milliseconds. */
export interface HttpLimits {
  /** The maximum size of all headers in a request. */
  readonly headerBytes: number;
  readonly headersTimeoutMs: number;
  /** The maximum time to receive a request. */
  readonly requestTimeoutMs: number;
  /** The maximum time without any data on a connection. It must be longer than the longest long poll. */
  readonly connectionTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** The time after which `close` aborts the requests in progress. */
  readonly drainTimeoutMs: number;
}

/** HttpServer is a server that answers all failures with a problem document. */
export interface HttpServer {
  /** The Fastify instance. Routes must be added before `listen` is called. */
  readonly app: FastifyInstance;
  /** Answers a request without a route. It sends 405 if the path has other methods, and 404 otherwise. */
  readonly answerUnrouted: (request: FastifyRequest, reply: FastifyReply) => void;
  /** Returns true if answers should ask the client to open a new connection (`Connection: close`). */
  readonly isDraining: () => boolean;
  /** Resolves with the listening port. If `port` is 0, a free port is used. */
  readonly listen: (port: number, host: string) => Promise<number>;
  /** Asks clients to open a new connection, while the server continues to accept requests. */
  readonly drain: () => void;
  /**
   * Stops accepting connections and waits for the requests in progress. The remaining requests are aborted after
   * `drainTimeoutMs`.
   */
  readonly close: () => Promise<void>;
}

interface HttpServerOptions {
  readonly limits: HttpLimits;
  readonly tracing?: Tracing | undefined;
  readonly fastify?: Pick<FastifyServerOptions, 'bodyLimit' | 'genReqId' | 'requestIdHeader' | 'routerOptions'>;
  readonly requireHostHeader?: boolean;
  /**
   * A pattern that matches the paths of all routes. Other paths are always answered with 404 instead of 405. Defaults
   * to all paths.
   */
  readonly pathPattern?: RegExp;
  /** Returns additional data for the 404 answer of a path. */
  readonly factsOfNoRoute: (path: string) => RefusalFacts;
  readonly sendProblem: (reply: FastifyReply, code: ProblemCode, facts?: RefusalFacts) => void;
  readonly onError: (error: FastifyError | Refusal, request: FastifyRequest, reply: FastifyReply) => void;
  /** This is called for each answer that is sent without a Fastify reply. */
  readonly onPlainAnswer?: (status: number) => void;
}

/**
 * The codes of Fastify's errors for requests without a route. The second one is included because Fastify checks the
 * content type of a QUERY request before the route.
 */
const UNROUTED: readonly string[] = ['FST_ERR_NOT_FOUND', 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE'];

/** Creates a server that only has the pages of the problems. Other routes are added by the caller. */
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
    // Fastify does not set these timeouts by default, so a client could keep a connection open forever.
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.connectionTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // This allows requests to finish if they arrived before the server started to close.
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
  // Node would otherwise answer 417 without a body.
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
      // Node only closes the connections that are idle when the server starts to close. Close those that become idle
      // later.
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
