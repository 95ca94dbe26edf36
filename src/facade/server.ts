import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import helmet from '@fastify/helmet';
import rateLimit from '@fastify/rate-limit';
import underPressure from '@fastify/under-pressure';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { ProblemCode } from '../core/problems/problems.ts';
import { createAllowedMethods } from '../http/allowed-methods.ts';
import { serveProblemPages } from '../http/problem-pages.ts';
import { answerProtocolError } from '../http/protocol-errors.ts';
import { Refusal } from '../http/refusal.ts';
import { traceRequests } from '../http/traced-requests.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { type AuthenticationOptions, registerAuthentication } from './auth/authentication.ts';
import { identityOf } from './auth/identity.ts';
import { parseJsonBody } from './contract/json-body.ts';
import { answerPlainly, createErrorHandler, sendProblem } from './contract/problem-answers.ts';
import { BODY_BYTES } from './contract/route.ts';
import type { FacadeMetrics } from './facade-metrics.ts';
import type { Facade } from './objects/facade.ts';
import { registerReference } from './reference.ts';
import { registerRoutes } from './registration.ts';
import { ROUTES } from './routes.ts';

/** Limits of the facade's HTTP server. */
export interface FacadeLimits {
  /** Maximum bytes of all headers. */
  readonly headerBytes: number;
  /** Maximum time to receive a request, ms. */
  readonly requestTimeoutMs: number;
  readonly headersTimeoutMs: number;
  /** Maximum idle time of a connection, ms; longer than the longest long poll. */
  readonly connectionTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** Time after which calls in progress are cut off on shutdown, ms. */
  readonly drainTimeoutMs: number;
  /** Calls per caller and minute, on this replica. */
  readonly callsPerMinute: number;
  /** Delay of the event loop from which calls are shed (503), ms. */
  readonly eventLoopDelayMs: number;
}

export const FACADE_LIMITS: FacadeLimits = {
  headerBytes: 32_768,
  requestTimeoutMs: 15_000,
  headersTimeoutMs: 10_000,
  connectionTimeoutMs: 60_000,
  keepAliveTimeoutMs: 65_000,
  drainTimeoutMs: 10_000,
  callsPerMinute: 6_000,
  eventLoopDelayMs: 1_000,
};

export interface FacadeServer {
  /** Resolves with the listening port; `port` 0 takes a free one. */
  readonly listen: (port: number, host?: string) => Promise<number>;
  /** Keeps serving, and asks clients to reconnect elsewhere (`Connection: close`). */
  readonly drain: () => void;
  /** Accepts no new connections, finishes calls in progress, and cuts off the rest after `drainTimeoutMs`. */
  readonly close: () => Promise<void>;
}

/** Returns whether the request line has only characters that routes use. */
const PLAIN_PATH = /^\/[A-Za-z0-9/_.~:@-]*$/;

/** The answer to a browser at the root; its links follow RFC 8631. */
const ROOT = {
  detail: 'The root has no content. Open /docs in a browser, or /openapi.json. The calls are under /waas.',
  headers: { link: '</docs>; rel="service-doc", </openapi.json>; rel="service-desc"' },
};

/**
 * Creates the HTTP server of `/waas` (authentication, then the routes), and of `/openapi.json` and `/docs` without a
 * token.
 */
export function createFacadeServer(options: {
  facade: Facade;
  authentication: AuthenticationOptions;
  metrics: FacadeMetrics;
  tracing?: Tracing | undefined;
  /** Version of the program, for the reference. */
  version: string;
  limits?: Partial<FacadeLimits>;
}): FacadeServer {
  const { facade, metrics } = options;
  const limits = { ...FACADE_LIMITS, ...options.limits };
  const onError = createErrorHandler(facade.log);
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_BYTES,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.connectionTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    // Event ids have up to 256 characters, each up to three in a path.
    routerOptions: { maxParamLength: 768 },
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, limits.headersTimeoutMs),
    },
    clientErrorHandler: (error, socket) => answerProtocolError(error, socket, () => undefined),
    frameworkErrors: (error, request, reply) => void onError(error, request, reply),
  });
  if (options.tracing !== undefined) traceRequests(app, options.tracing);
  let draining = false;
  const allowed = createAllowedMethods();
  app.addHook('onRoute', route => allowed.add(route.method, route.url));
  app.addHook('onRequest', async (_request, reply) => {
    metrics.enter();
    reply.raw.once('close', metrics.leave);
  });
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id);
    if (draining) reply.header('connection', 'close');
  });
  app.addHook('onResponse', async (request, reply) => {
    const { url } = request.routeOptions;
    const route = url === undefined ? 'none' : `${request.method} ${url}`;
    metrics.answered(route, reply.statusCode, reply.elapsedTime / 1_000);
  });
  app.setErrorHandler((error: FastifyError | Refusal, request, reply) => {
    // Fastify checks the content type of a QUERY before the route. No route has this method.
    const unrouted = !(error instanceof Refusal) && error.code === 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE';
    return unrouted ? answerUnrouted(request, reply) : onError(error, request, reply);
  });
  // Node would answer 417 without a body.
  app.server.on('checkExpectation', (_request, response) => answerPlainly(response, 'expectation_failed'));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_request: unknown, bytes: Buffer) =>
    parseJsonBody(bytes),
  );

  function answerUnrouted(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const path = (request.raw.url ?? '').replace(/[?#].*$/s, '');
    const allow = PLAIN_PATH.test(path) ? allowed.find(path) : undefined;
    if (path === '/' && allow === undefined) return sendProblem(reply, 'not_found', ROOT);
    return allow === undefined
      ? sendProblem(reply, 'not_found', detailOfNoRoute(path))
      : sendProblem(reply, 'method_not_allowed', { headers: { allow } });
  }

  async function registerShared(): Promise<void> {
    // The header means nothing over http (RFC 6797, 8.1); a TLS proxy in front sets its own policy.
    await app.register(helmet, { contentSecurityPolicy: false, strictTransportSecurity: false });
    await app.register(underPressure, {
      maxEventLoopDelay: limits.eventLoopDelayMs,
      pressureHandler: () => {
        throw new Refusal('overloaded');
      },
    });
    app.setNotFoundHandler(answerUnrouted);
    serveProblemPages(app);
    await registerReference(app, options.version);
    await app.register(registerScope, { prefix: '/waas' });
  }

  /** These two hooks run for everything under `/waas`, in this order, before any body is read. */
  async function registerScope(scope: FastifyInstance): Promise<void> {
    await registerAuthentication(scope, { onRefused: metrics.refused, ...options.authentication });
    await scope.register(rateLimit, {
      global: true,
      hook: 'onRequest',
      max: limits.callsPerMinute,
      timeWindow: 60_000,
      enableDraftSpec: true,
      keyGenerator: request => {
        const { issuer, subject } = identityOf(request);
        return JSON.stringify([issuer, subject]);
      },
      errorResponseBuilder: () => new Refusal('rate_limited' satisfies ProblemCode),
    });
    scope.setNotFoundHandler(answerUnrouted);
    registerRoutes(scope, ROUTES, facade);
  }

  return {
    async listen(port, host = '::') {
      await registerShared();
      await app.listen({ port, host });
      return (app.server.address() as AddressInfo).port;
    },
    drain() {
      draining = true;
    },
    async close() {
      const cut = setTimeout(() => app.server.closeAllConnections(), limits.drainTimeoutMs);
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

/** Returns a hint for a path without a route, if there is one. */
function detailOfNoRoute(path: string): { readonly detail?: string } {
  if (/^\/events(\/|$)/.test(path)) {
    return { detail: 'This is the facade role; send events to the ingress role (SLUICE_INGRESS_PORT), at this path.' };
  }
  return path.length > 1 && path.endsWith('/') ? { detail: 'Leave out the slash at the end of the path.' } : {};
}
