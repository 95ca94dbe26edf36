import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import helmet from '@fastify/helmet';
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';
import { type ClientAddress, type ConnectionAddress, networkOf } from '../http/client-address.ts';
import { createClosedLog } from '../http/connections/closed-connections.ts';
import { createConnectionLimit } from '../http/connections/connection-limit.ts';
import { answerPlainly, sendProblem } from '../http/problem-answers.ts';
import { Refusal, type RefusalFacts } from '../http/refusal.ts';
import { createHttpServer, type HttpLimits, type HttpServer } from '../http/server.ts';
import { limitUnread } from '../http/unread-responses.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { Certificate } from '../tls/served-certificate.ts';
import type { AuditTrail } from './audit/audit-trail.ts';
import { type AuthenticationOptions, reasonOf, registerAuthentication } from './auth/authentication.ts';
import { callerKey, findIdentity } from './auth/identity.ts';
import { createAddressLimit } from './contract/address-limit.ts';
import { createAddressTurns } from './contract/address-turns.ts';
import { createErrorHandler } from './contract/error-handler.ts';
import { acceptJson } from './contract/json-body.ts';
import { createPacedRefusals, REFUSED_CALLERS } from './contract/paced-refusals.ts';
import { createPipelines } from './contract/pipelines.ts';
import { type PointLimits, registerRateLimit } from './contract/rate-limit.ts';
import { BODY_BYTES } from './contract/route.ts';
import { createTurns } from './contract/turns.ts';
import type { FacadeMetrics } from './facade-metrics.ts';
import type { Facade } from './objects/facade.ts';
import { registerReference } from './reference.ts';
import { registerRoutes, wellFormed } from './registration.ts';
import { ROUTES } from './routes.ts';
import { createRunningCalls, type RunningCalls } from './running-calls.ts';
import { factsOfNoRoute, PLAIN_PATH } from './unrouted.ts';

/** Limits for the facade's HTTP server. */
export interface FacadeLimits extends HttpLimits {
  /**
   * The points per minute for each caller on this replica. Up to a sixth of them can be used in a single burst. Most
   * calls cost 1 point.
   */
  readonly pointsPerMinute: number;
  /** The points per minute for each address on this replica. Each call costs a single point. */
  readonly addressPointsPerMinute: number;
  /** The maximum number of concurrent calls for each address on this replica. */
  readonly addressCalls: number;
  /** The maximum number of connections for each address on this replica, except for trusted proxies. */
  readonly addressConnections: number;
  /** The maximum number of connections on this replica. */
  readonly connections: number;
  /** The maximum size of the responses that wait until their clients read them, in bytes. */
  readonly unreadBytes: number;
  /** Mean event loop delay in milliseconds above which calls are rejected with 503. */
  readonly eventLoopDelayMs: number;
  /** The time in milliseconds that the mean is calculated over, so that a single pause does not reject calls. */
  readonly eventLoopSampleMs: number;
}

const FACADE_LIMITS: FacadeLimits = {
  headerBytes: 32_768,
  requestTimeoutMs: 15_000,
  headersTimeoutMs: 10_000,
  connectionTimeoutMs: 60_000,
  keepAliveTimeoutMs: 65_000,
  lingerTimeoutMs: 5_000,
  drainTimeoutMs: 10_000,
  pointsPerMinute: 6_000,
  addressPointsPerMinute: 60_000,
  addressCalls: 256,
  addressConnections: 512,
  connections: 8_192,
  unreadBytes: 67_108_864,
  eventLoopDelayMs: 1_000,
  eventLoopSampleMs: 5_000,
};

export type FacadeServer = Pick<HttpServer, 'useCertificate' | 'listen' | 'drain' | 'close'>;

/** The maximum length of a path and its query. The paths of all routes are shorter. Reading a path takes CPU time. */
const LONGEST_TARGET = 8_192;
const TOO_LONG = { detail: `The path and the query have more than ${LONGEST_TARGET.toLocaleString('en')} characters.` };

/** Creates the HTTP server. All `/waas` routes require authentication, `/openapi.json` and `/docs` don't. */
export function createFacadeServer(options: {
  facade: Facade;
  authentication: AuthenticationOptions;
  metrics: FacadeMetrics;
  audit: AuditTrail;
  tracing?: Tracing | undefined;
  /** Serves HTTPS instead of HTTP. */
  certificate?: Certificate | undefined;
  /** Limits the calls of each address. If omitted, there is no limit. */
  addressOf?: ClientAddress | undefined;
  /** Limits the connections of each address. If omitted, there is no limit. */
  connectionOf?: ConnectionAddress | undefined;
  /** Program version, shown in the reference. */
  version: string;
  /** If true, serves `/openapi.json` and `/docs`. Defaults to true. */
  servesReference?: boolean;
  limits?: Partial<FacadeLimits>;
}): FacadeServer {
  const { facade, metrics, audit, tracing, addressOf, servesReference = true } = options;
  const limits = { ...FACADE_LIMITS, ...options.limits };
  const rates = { limits: pointLimits(facade, limits), onRefused: metrics.limited };
  const onClosed = logClosed(facade, limits);
  const server = createHttpServer({
    limits,
    tracing,
    certificate: options.certificate,
    fastify: {
      bodyLimit: BODY_BYTES,
      genReqId: () => randomUUID(),
      requestIdHeader: false,
      // Event ids have up to 256 characters, each of which can require three characters in a path.
      routerOptions: { maxParamLength: 768 },
    },
    connections: limitConnections(options, limits, onClosed),
    pathPattern: PLAIN_PATH,
    factsOfNoRoute: path => factsOfNoRoute(path, servesReference),
    sendProblem,
    onError: noteRefusals(options, paceRefusals(addressOf, createErrorHandler(facade.log))),
  });
  const { app } = server;
  const calls = createRunningCalls();
  observe(server, metrics);
  receiveInTurns(server, { ...rates, addressOf, metrics });
  acceptJson(app);
  const clientOf = (request: FastifyRequest) => readerOf(request, addressOf);
  limitUnread(app, { mostBytes: limits.unreadBytes, clientOf, onClosed: () => onClosed('unread') });

  async function registerShared(): Promise<void> {
    // Has no effect over http (RFC 6797, 8.1), so don't set it. A TLS proxy in front can set another policy.
    await app.register(helmet, { contentSecurityPolicy: false, strictTransportSecurity: false });
    await app.register(underPressure, {
      maxEventLoopDelay: limits.eventLoopDelayMs,
      sampleInterval: limits.eventLoopSampleMs,
      pressureHandler: () => {
        throw new Refusal('overloaded');
      },
    });
    if (servesReference) await registerReference(app, options.version);
    await app.register(registerScope, { prefix: '/waas' });
  }

  /** Authentication and the rate limit run in this order for every `/waas` request, before the body is read. */
  async function registerScope(scope: FastifyInstance): Promise<void> {
    await registerAuthentication(scope, { onRefused: metrics.refused, ...options.authentication });
    const rateLimit = registerRateLimit(scope, { ...rates, nowMs: () => facade.clock.nowMs() });
    scope.setNotFoundHandler(server.answerUnrouted);
    const { requireScopes = false } = options.authentication;
    const turns = createTurns({ onWaiting: metrics.waiting, onRefused: metrics.limited });
    registerRoutes(scope, ROUTES, facade, { rateLimit, turns, calls, audit, requireScopes });
  }

  return {
    ...server,
    async listen(port, host) {
      await registerShared();
      return server.listen(port, host);
    },
    close: () => closeAfter(server, calls, limits),
  };
}

/** Closes the server, which waits for connections. A call continues without its client, and is audited when it ends. */
async function closeAfter(server: HttpServer, calls: RunningCalls, { drainTimeoutMs }: FacadeLimits): Promise<void> {
  const late = delay(drainTimeoutMs, undefined, { ref: false });
  await server.close();
  await Promise.race([calls.ended(), late]);
}

function logClosed({ log }: Pick<Facade, 'log'>, { addressConnections, connections, unreadBytes }: FacadeLimits) {
  return createClosedLog({ log, most: { address: addressConnections, total: connections, unread: unreadBytes } });
}

function limitConnections(
  { connectionOf }: { connectionOf?: ConnectionAddress | undefined },
  { addressConnections: perAddress, connections: total }: FacadeLimits,
  onClosed: ReturnType<typeof logClosed>,
) {
  return createConnectionLimit({ connectionOf, perAddress, total, onClosed });
}

/** Returns whose response is sent: the caller's. Without a valid token, the client's. */
function readerOf(request: FastifyRequest, addressOf: ClientAddress | undefined): unknown {
  const identity = findIdentity(request);
  return identity === undefined ? addressOf?.(request.raw) : callerKey(identity);
}

function pointLimits(facade: Facade, limits: FacadeLimits): PointLimits {
  return {
    perAddress: limits.addressPointsPerMinute,
    perCaller: limits.pointsPerMinute,
    ofAccount: account => facade.limits.pointsPerMinuteOf(account),
    accountCeiling: () => facade.ceilings.requestsPerMinute,
    inProgress: limits.addressCalls,
  };
}

/**
 * Passes calls to Fastify in the order of their turns. Refuses calls beyond a limit of their address, or with a target
 * that is too long. Refused calls are counted in the same way as calls without a route.
 */
function receiveInTurns(
  { serveFirst, endsConnection, afterArrivals }: HttpServer,
  {
    metrics,
    addressOf,
    ...rates
  }: Pick<Parameters<typeof createAddressLimit>[0], 'limits' | 'onRefused'> & {
    readonly metrics: FacadeMetrics;
    readonly addressOf: ClientAddress | undefined;
  },
): void {
  const answer = (response: ServerResponse, code: ProblemCode, { headers, ...facts }: RefusalFacts) => {
    const ofAll = { 'x-request-id': randomUUID(), 'x-content-type-options': 'nosniff' };
    const closing = endsConnection(response.req) ? { connection: 'close' } : {};
    const status = answerPlainly(response, code, { ...facts, headers: { ...headers, ...ofAll, ...closing } });
    metrics.answered('none', status, 0);
  };
  const limit =
    addressOf &&
    createAddressLimit({ ...rates, addressOf, answer: (response, facts) => answer(response, 'rate_limited', facts) });
  const turns = createAddressTurns({ addressOf, nextIteration: afterArrivals });
  function receive(request: IncomingMessage, response: ServerResponse, pass: () => void): void {
    const isTooLong = (request.url?.length ?? 0) > LONGEST_TARGET;
    const refuse =
      limit?.(request, response) ?? (isTooLong ? () => answer(response, 'uri_too_long', TOO_LONG) : undefined);
    if (refuse === undefined) turns.start(request, response, pass);
    else turns.refuse(request, response, refuse);
  }
  const inTurn = createPipelines();
  serveFirst((request, response, pass) => inTurn(request, response, () => receive(request, response, pass)));
}

type OnError = ReturnType<typeof createErrorHandler>;

/**
 * Delays the responses to calls beyond a limit if a client gets many of them. Such calls have been authenticated, which
 * takes longer than refusing a call because of its address.
 */
function paceRefusals(addressOf: ClientAddress | undefined, onError: OnError): OnError {
  const pace = createPacedRefusals(REFUSED_CALLERS);
  return (error, request, reply) => {
    const identity = findIdentity(request);
    if (error.code !== 'rate_limited' || identity === undefined) return onError(error, request, reply);
    pace(addressOf?.(request.raw) ?? callerKey(identity), reply.raw, () => onError(error, request, reply));
  };
}

/** Counts calls without access (401 and 403), and writes them to the audit stream, before passing errors on. */
function noteRefusals(
  { audit, metrics, addressOf }: { audit: AuditTrail; metrics: FacadeMetrics; addressOf?: ClientAddress | undefined },
  onError: OnError,
): OnError {
  function note(refusal: Refusal, request: FastifyRequest): void {
    const { status } = PROBLEMS[refusal.code];
    if (status !== 401 && status !== 403) return;
    if (status === 403) metrics.forbidden(refusal.code);
    // Paths without a route do not have a config.
    const operation = request.routeOptions.config?.operation;
    audit.refused({
      status,
      reason: reasonOf(refusal) ?? refusal.code,
      network: addressOf && networkOf(addressOf(request.raw)),
      identity: findIdentity(request),
      operation,
      params: operation === undefined ? {} : wellFormed(request.params as Record<string, string>),
      requestId: request.id,
      traceparent: request.headers.traceparent as string | undefined,
    });
  }
  return (error, request, reply) => {
    if (error instanceof Refusal) note(error, request);
    return onError(error, request, reply);
  };
}

/** Counts calls and adds the headers included in every response. */
function observe({ app }: HttpServer, metrics: FacadeMetrics): void {
  app.addHook('onRequest', async (_request, reply) => {
    metrics.enter();
    reply.raw.once('close', metrics.leave);
  });
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.addHook('onResponse', async (request, reply) => {
    const { url } = request.routeOptions;
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const route = url === undefined ? 'none' : `${method} ${url}`;
    metrics.answered(route, reply.statusCode, reply.elapsedTime / 1_000);
  });
}
