import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify';
import type { ProblemCode } from '../core/problems/problems.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { Certificate } from '../tls/served-certificate.ts';
import { createAllowedMethods } from './allowed-methods.ts';
import { createArrivals } from './connections/arrivals.ts';
import type { ConnectionCount } from './connections/connection-limit.ts';
import { takeHandshakeTurns } from './connections/handshakes.ts';
import { continueWhenRead } from './expected-bodies.ts';
import { createLastResponses, type LastResponses } from './last-responses.ts';
import { answerPlainly } from './problem-answers.ts';
import { serveProblemPages } from './problem-pages.ts';
import { createProtocolErrors } from './protocol-errors.ts';
import type { Refusal, RefusalFacts } from './refusal.ts';
import { traceRequests } from './traced-requests.ts';

/** HTTP server limits. All sizes are in bytes. All times are in milliseconds. */
export interface HttpLimits {
  /** The maximum total size of request headers. */
  readonly headerBytes: number;
  readonly headersTimeoutMs: number;
  /** The maximum time for receiving a request. */
  readonly requestTimeoutMs: number;
  /** The maximum time without any data on a connection. Must be longer than the longest long poll. */
  readonly connectionTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /**
   * The time for which the rest of a request is read and discarded after its response. Without this, the client could
   * not read the response, because its connection would be reset.
   */
  readonly lingerTimeoutMs: number;
  /** The time after which `close` aborts requests in progress. */
  readonly drainTimeoutMs: number;
}

/** HttpServer is a server that responds to every failure with a problem document. */
export interface HttpServer {
  /** The Fastify instance. Routes must be added before calling `listen`. */
  readonly app: FastifyInstance;
  /** Responds to requests without a route: 405 if the path supports other methods, 404 otherwise. */
  readonly answerUnrouted: (request: FastifyRequest, reply: FastifyReply) => void;
  /**
   * Passes each request to `serve` before Fastify. Fastify only receives requests for which it calls `pass`, at once or
   * later. Fastify's hooks are not called for any other requests.
   */
  readonly serveFirst: (serve: (request: IncomingMessage, response: ServerResponse, pass: () => void) => void) => void;
  /**
   * Returns true if the response to a request should ask the client to open a new connection (`Connection: close`).
   * While draining, this is the last response of each connection. Requests behind it are not processed. Call this for
   * each response that is sent without Fastify.
   */
  readonly endsConnection: (request: IncomingMessage) => boolean;
  /** Runs a function in the next iteration of the event loop, after connections that have arrived until then. */
  readonly afterArrivals: (run: () => void) => void;
  /**
   * Uses a different certificate for new connections. Only available for a server that was created with a certificate.
   */
  readonly useCertificate: (certificate: Certificate) => void;
  /** Resolves with the listening port. Use a `port` of 0 to listen on any free port. */
  readonly listen: (port: number, host: string) => Promise<number>;
  /** Asks clients to open a new connection, while still accepting requests. */
  readonly drain: () => void;
  /**
   * Stops accepting connections and waits for requests in progress. Any remaining requests are aborted after
   * `drainTimeoutMs`.
   */
  readonly close: () => Promise<void>;
}

interface HttpServerOptions {
  readonly limits: HttpLimits;
  readonly tracing?: Tracing | undefined;
  /** Serves HTTPS instead of HTTP. */
  readonly certificate?: Certificate | undefined;
  readonly fastify?: Pick<FastifyServerOptions, 'bodyLimit' | 'genReqId' | 'requestIdHeader' | 'routerOptions'>;
  readonly requireHostHeader?: boolean;
  /** Limits the connections, before their TLS handshake. */
  readonly connections?: Pick<ConnectionCount, 'accept' | 'serve'> | undefined;
  /** Pattern matching the paths of all routes. Other paths always get a 404, never a 405. Defaults to all paths. */
  readonly pathPattern?: RegExp;
  /** Returns additional data for the 404 response of a path. */
  readonly factsOfNoRoute: (path: string) => RefusalFacts;
  readonly sendProblem: (reply: FastifyReply, code: ProblemCode, facts?: RefusalFacts) => void;
  readonly onError: (error: FastifyError | Refusal, request: FastifyRequest, reply: FastifyReply) => void;
  /** Called for each response sent without a Fastify reply. */
  readonly onPlainAnswer?: (status: number) => void;
}

/**
 * Fastify error codes for requests without a route. We need the second one because the content type of a QUERY request
 * is checked before the route.
 */
const UNROUTED: readonly string[] = ['FST_ERR_NOT_FOUND', 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE'];

/**
 * The number of connections that the kernel keeps until they are accepted, unless its own limit (`somaxconn`) is lower.
 * The kernel drops any others. Their clients only repeat them after a second. Node's default is 511.
 */
export const BACKLOG = 4_096;

const SEVERAL_HOSTS = { detail: 'Send a single Host header.' };

/** Creates a server that only provides the problem pages. Callers add all other routes. */
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

  const http = {
    requireHostHeader: options.requireHostHeader ?? true,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersTimeoutMs,
    connectionsCheckingInterval: Math.min(5_000, limits.headersTimeoutMs),
  };
  const app = Fastify({
    ...options.fastify,
    logger: false,
    // By default, Fastify doesn't set these timeouts and clients could keep connections open forever.
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.connectionTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // Lets requests finish if they arrived before we started closing.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    ...serverOptions(http, options.certificate),
    clientErrorHandler: createProtocolErrors(onPlainAnswer, limits.lingerTimeoutMs),
    frameworkErrors: answerError,
  });
  const afterArrivals = receiveConnections(app.server, options);
  const lastResponses = createLastResponses(limits.lingerTimeoutMs);
  const serveFirst = receiveRequests(app, lastResponses, onPlainAnswer);
  const endsConnection: HttpServer['endsConnection'] = request => draining && lastResponses.closeIfLast(request);
  closeConnections(app, endsConnection);
  // Afterwards, since the function above replaces all listeners for requests.
  if (options.connections !== undefined) limitConnections(app.server, options.connections);
  if (tracing !== undefined) traceRequests(app, tracing);
  app.addHook('onRoute', route => allowed.add(route.method, route.url));
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(answerUnrouted);
  serveProblemPages(app);

  return {
    app,
    answerUnrouted,
    serveFirst,
    endsConnection,
    afterArrivals,
    useCertificate: ({ cert, key }) => (app.server as unknown as HttpsServer).setSecureContext({ cert, key }),
    async listen(port, host) {
      await app.listen({ port, host, backlog: BACKLOG });
      return (app.server.address() as AddressInfo).port;
    },
    drain() {
      draining = true;
    },
    async close() {
      draining = true;
      const cut = setTimeout(() => app.server.closeAllConnections(), limits.drainTimeoutMs);
      // Node only closes connections that are already idle when we start closing. Close those that become idle later.
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

/**
 * Returns true if there is more than one Host field, which must be refused (RFC 9112, 3.2). Node only keeps the first
 * one, but a proxy may have used another.
 */
function hasSeveralHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts > 1;
}

/** Passes requests to Fastify. Returns a function that sets who gets them first. */
function receiveRequests(
  app: FastifyInstance,
  lastResponses: LastResponses,
  onPlainAnswer: NonNullable<HttpServerOptions['onPlainAnswer']>,
): HttpServer['serveFirst'] {
  let serve: Parameters<HttpServer['serveFirst']>[0] = (_request, _response, pass) => pass();
  function refuse(request: IncomingMessage, response: ServerResponse, code: ProblemCode, facts?: RefusalFacts): void {
    lastResponses.close(request);
    onPlainAnswer(answerPlainly(response, code, facts));
  }
  app.server.removeAllListeners('request');
  app.server.on('request', (request, response) => {
    if (!lastResponses.enter(request, response)) return;
    if (hasSeveralHosts(request)) refuse(request, response, 'malformed_request', SEVERAL_HOSTS);
    else serve(request, response, () => app.routing(request, response));
  });
  // Handle this event, so that Node does not ask for the body before the request is admitted.
  app.server.on('checkContinue', (request, response) => {
    continueWhenRead(request, response);
    app.server.emit('request', request, response);
  });
  // Handle this event, so that Node does not respond with a 417 without a body.
  app.server.on('checkExpectation', (request, response) => {
    if (lastResponses.enter(request, response)) refuse(request, response, 'expectation_failed');
  });
  return first => {
    serve = first;
  };
}

/** Closes connections after the last response if it is sent by Fastify. */
function closeConnections(app: FastifyInstance, endsConnection: HttpServer['endsConnection']): void {
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (endsConnection(request.raw)) reply.header('connection', 'close');
    done();
  });
}

/** Starts TLS handshakes in turn. Returns the function that runs others after the connections that have arrived. */
function receiveConnections(
  server: FastifyInstance['server'],
  { limits, certificate }: HttpServerOptions,
): HttpServer['afterArrivals'] {
  if (certificate !== undefined) {
    const nextIteration = (run: () => void) => afterArrivals(run);
    takeHandshakeTurns(server, { timeoutMs: limits.headersTimeoutMs, nextIteration });
  }
  const afterArrivals = createArrivals(server);
  return afterArrivals;
}

function limitConnections(
  server: FastifyInstance['server'],
  { accept, serve }: Pick<ConnectionCount, 'accept' | 'serve'>,
): void {
  server.prependListener('connection', (socket: Socket) => {
    if (!accept(socket)) socket.destroy();
  });
  server.prependListener('request', (_request, response) => serve(response));
}

/** Returns the options for `node:http`, or the options for `node:https`, which use a different property. */
function serverOptions(http: ServerOptions, certificate: Certificate | undefined): { readonly http: ServerOptions } {
  if (certificate === undefined) return { http };
  // All other timeouts start after the handshake, for which Node would wait two minutes.
  const handshakeTimeout = http.headersTimeout;
  const https = { ...http, handshakeTimeout, cert: certificate.cert, key: certificate.key };
  // The Fastify types differ by property, but the servers are used in the same way.
  return { https } as unknown as { readonly http: ServerOptions };
}
