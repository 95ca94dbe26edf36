import { randomFillSync } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { PROBLEM_CONTENT_TYPE, problem } from '../../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../../core/problems/problems.ts';
import { createAllowedMethods } from '../../http/allowed-methods.ts';
import { serveProblemPages } from '../../http/problem-pages.ts';
import { answerProtocolError } from '../../http/protocol-errors.ts';
import { traceRequests } from '../../http/traced-requests.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import { parseTraceparent, type Tracing } from '../../telemetry/tracing.ts';
import { type Admission, createAdmission } from './admission.ts';
import { type Answers, createAnswers } from './answers.ts';
import { createBatches } from './batches.ts';
import { createEventIds, createRandom40 } from './event-id.ts';
import { createEventRoute } from './event-route.ts';
import { createFailureLog } from './failures.ts';
import { createIngressMetrics } from './ingress-metrics.ts';
import { createKeyChecks } from './key-checks.ts';
import { INGRESS_LIMITS, type IngressLimits } from './limits.ts';
import { type AskMasters, createMemoryStop } from './memory-stop.ts';
import { createQueueCache } from './queue-cache.ts';
import { type ByteBudget, createByteBudget } from './request-body.ts';
import { createRunReportRoute } from './run-report-route.ts';
import { createSandboxMetrics } from './sandbox-metrics.ts';
import { createSandboxRoute, type SandboxDesk } from './sandbox-route.ts';
import type { IngressStore } from './store.ts';

/** What further routes of the same server share with the production route. */
export interface IngressShared {
  readonly admission: Admission;
  readonly answers: Answers;
  readonly budget: ByteBudget;
  readonly limits: IngressLimits;
  readonly nextEventId: () => string;
}

/** The ingress role. */
export interface Ingress {
  /** Resolves with the port that is listened on; `port` 0 takes a free one. */
  readonly listen: (port: number, host?: string) => Promise<number>;
  /**
   * Takes no new connections, finishes what is in progress (each answer says `Connection: close`), and cuts what is
   * left after `drainTimeoutMs`. Resolves when nothing is on its way to the store any more.
   */
  readonly close: () => Promise<void>;
  /** Goes on, and asks whoever is answered to take its next request elsewhere (`Connection: close`). */
  readonly drain: () => void;
  readonly address: () => AddressInfo | undefined;
  /** For further routes, before `listen`. Bodies of all routes are unread: see request-body.ts. */
  readonly app: FastifyInstance;
  readonly shared: IngressShared;
}

/** The answer to a browser that opens the address. */
const AT_THE_ROOT =
  'Nothing is at the root of the ingress. Send events to POST /events/{tenant}/{queue}; the facade, on SLUICE_FACADE_PORT, serves /docs and the calls of /waas.';

/**
 * HTTP server for `POST /events/{tenant}/{queue}`, and for the sandbox's routes where it is given one. Everything it
 * answers that is no success is a problem document.
 * `nowMs` is the wall clock in milliseconds; it ages what is remembered and dates generated ids.
 */
export function createIngress(options: {
  store: IngressStore;
  askMasters: AskMasters;
  registry: Registry;
  tracing?: Tracing | undefined;
  log: Logger;
  sandbox?: SandboxDesk;
  limits?: Partial<IngressLimits>;
  nowMs?: () => number;
}): Ingress {
  const { store, log, nowMs = Date.now } = options;
  const limits: IngressLimits = { ...INGRESS_LIMITS, ...options.limits };
  const metrics = createIngressMetrics(options.registry);
  let closing = false;
  const answers = createAnswers(metrics, () => closing);
  const onFailure = createFailureLog(log, nowMs);
  const memory = createMemoryStop({ askMasters: options.askMasters, limits, log, onFailure });
  const budget = createByteBudget(limits.heldBytes);
  metrics.observeHeld(budget.held, limits.heldBytes);
  const nextEventId = createEventIds(nowMs, createRandom40(randomFillSync));
  const keys = createKeyChecks({
    checkKey: (tenant, sha256) => store.checkKey(tenant, sha256),
    limits,
    nowMs,
    onFailure,
  });
  const queues = createQueueCache({
    readQueue: (tenant, queue) => store.readQueue(tenant, queue),
    limits,
    nowMs,
    onFailure,
  });
  const batches = createBatches({
    ingest: (tenant, queue, config, items) => store.ingest(tenant, queue, config, items),
    limits,
    onFailure,
  });
  const onError = (reply: FastifyReply, startedMs: number, error: unknown) => {
    const traceId = parseTraceparent(reply.request.headers.traceparent as string | undefined)?.traceId;
    log.error({ err: error, ...(traceId === undefined ? {} : { traceId }) }, 'request failed');
    answers.sendProblem(reply, startedMs, 'internal');
  };
  const admission = createAdmission({ keys, queues, answers, onError });
  const handleEvent = createEventRoute({
    admission,
    queues,
    batches,
    memory,
    budget,
    answers,
    metrics,
    limits,
    nextEventId,
    onError,
  });

  const app = Fastify({
    logger: false,
    // Read timeouts: Fastify leaves both at 0, which lets a sender hold a connection for ever.
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.connectionTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // Requests that are here when closing begins are finished: an event is not refused for a restart.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 128 },
    http: {
      requireHostHeader: false,
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, limits.headersTimeoutMs),
    },
    clientErrorHandler: (error, socket) =>
      answerProtocolError(error, socket, status => metrics.countRequest(status, 0)),
    frameworkErrors: answerFrameworkError,
  });

  if (options.tracing !== undefined) traceRequests(app, options.tracing);
  const allowed = createAllowedMethods();
  app.addHook('onRoute', route => allowed.add(route.method, route.url));
  // Declared as without body, so that no parser of Fastify touches one, whatever its content type: routes read it.
  for (const method of app.supportedMethods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  app.setErrorHandler((error: FastifyError, _request, reply) => answerFrameworkError(error, _request, reply));
  app.setNotFoundHandler((request, reply) => answerUnrouted(request, reply));
  serveProblemPages(app);
  app.post('/events/:tenant/:queue', handleEvent);
  if (options.sandbox !== undefined) openSandbox(options.sandbox);
  app.server.on('checkExpectation', (_request, response: ServerResponse) =>
    answerPlainly(response, 'expectation_failed'),
  );

  /** With metrics, memory and answers of its own: nothing of it is counted as production's, or takes its room. */
  function openSandbox(sandbox: SandboxDesk): void {
    const sandboxAnswers = createAnswers(createSandboxMetrics(options.registry), () => closing);
    const routeOptions = {
      sandbox,
      queues,
      limits,
      nextEventId,
      nowMs,
      onFailure,
      onError,
      admission: createAdmission({ keys, queues, answers: sandboxAnswers, onError }),
      answers: sandboxAnswers,
      memory,
      budget: createByteBudget(limits.sandboxHeldBytes),
    };
    app.post('/events/sandbox/:tenant/:queue', createSandboxRoute(routeOptions));
    app.get('/events/sandbox/:tenant/runs/:run', createRunReportRoute(routeOptions));
  }

  function answerUnrouted(request: FastifyRequest, reply: FastifyReply): void {
    const path = (request.raw.url ?? '').replace(/[?#].*$/s, '');
    const allow = allowed.find(path);
    if (allow === undefined) answers.sendProblem(reply, performance.now(), 'not_found', detailOfNoRoute(path));
    else answers.sendProblem(reply, performance.now(), 'method_not_allowed', { headers: { allow } });
  }

  function answerFrameworkError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
    if (error.code === 'FST_ERR_NOT_FOUND') return answerUnrouted(request, reply);
    const status = error.statusCode ?? 500;
    if (status >= 500) return onError(reply, performance.now(), error);
    answers.sendProblem(reply, performance.now(), status === 414 ? 'uri_too_long' : 'malformed_request');
  }

  function answerPlainly(response: ServerResponse, code: ProblemCode): void {
    const { status } = PROBLEMS[code];
    metrics.countRequest(status, 0);
    const document = JSON.stringify(problem(code));
    const headers = { 'content-type': PROBLEM_CONTENT_TYPE, 'content-length': document.length, connection: 'close' };
    response.writeHead(status, headers).end(document);
  }

  function address(): AddressInfo | undefined {
    const bound = app.server.address();
    return bound === null || typeof bound === 'string' ? undefined : bound;
  }

  return {
    app,
    shared: { admission, answers, budget, limits, nextEventId },
    address,
    async listen(port, host = '0.0.0.0') {
      await memory.start();
      await app.listen({ port, host });
      return address()?.port ?? port;
    },
    drain() {
      closing = true;
    },
    async close() {
      closing = true;
      memory.stop();
      const cut = setTimeout(() => app.server.closeAllConnections(), limits.drainTimeoutMs);
      // Node closes idle connections once, when closing begins; those that become idle later would stay for the whole
      // keep-alive time.
      const sweep = setInterval(() => app.server.closeIdleConnections(), 50);
      try {
        await app.close();
        await batches.idle();
      } finally {
        clearTimeout(cut);
        clearInterval(sweep);
      }
    },
  };
}

/** Returns what to change in a path without a route, where that is plain. */
function detailOfNoRoute(path: string): { readonly detail?: string } {
  if (path === '/') return { detail: AT_THE_ROOT };
  if (/^\/(waas|docs|openapi\.json)(\/|$)/.test(path)) {
    return { detail: 'This is the ingress role; send calls of /waas to the facade role (SLUICE_FACADE_PORT).' };
  }
  if (/^\/events\/.+\/$/.test(path)) return { detail: 'Leave out the slash at the end of the path.' };
  return {};
}
