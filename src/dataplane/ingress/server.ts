import type { ClientAddress, ConnectionAddress } from '../../http/client-address.ts';
import { createClosedLog } from '../../http/connections/closed-connections.ts';
import { createConnectionLimit } from '../../http/connections/connection-limit.ts';
import { serveOpenApi } from '../../http/openapi-document.ts';
import type { RefusalFacts } from '../../http/refusal.ts';
import { createHttpServer, type HttpServer } from '../../http/server.ts';
import { traceOf } from '../../http/traced-requests.ts';
import { createFailureLog } from '../../telemetry/failure-log.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { Certificate } from '../../tls/served-certificate.ts';
import { createAdmission } from './admission.ts';
import { createAnswers } from './answers.ts';
import { createBatches } from './batches.ts';
import type { EventParams, EventReply } from './event-request.ts';
import { createEventRoute } from './event-route.ts';
import { createIngressMetrics, type IngressMetrics } from './ingress-metrics.ts';
import { createKeyChecks, type KeyChecks } from './key-checks.ts';
import { INGRESS_LIMITS, type IngressLimits } from './limits.ts';
import { createMemoryStop, type MemorySource, type MemoryStop } from './memory/memory-stop.ts';
import document from './openapi.json' with { type: 'json' };
import { createQueueCache, type QueueCache } from './queue-cache.ts';
import { createByteBudget } from './request-body.ts';
import { createSenderLimits, type SenderLimits, type SenderRates } from './sender-limits.ts';
import type { IngressStore, KeysVersion } from './store.ts';

/** HTTP server for the ingress role. */
export type Ingress = Pick<HttpServer, 'app' | 'useCertificate' | 'listen' | 'drain' | 'close'>;

/** The dependencies that are shared by all routes of a server. */
export interface SharedByRoutes {
  readonly app: HttpServer['app'];
  readonly registry: Registry;
  readonly limits: IngressLimits;
  readonly keys: KeyChecks;
  readonly senderLimits: SenderLimits;
  readonly queues: QueueCache;
  readonly memory: MemoryStop;
  readonly nowMs: () => number;
  readonly endsConnection: HttpServer['endsConnection'];
  /** Logs that the store has failed. */
  readonly onFailure: (operation: string, error: unknown) => void;
  /** Sends the response if the handler of a request has thrown an error. */
  readonly onError: (reply: EventReply, startedMs: number, error: unknown) => void;
}

export type AddRoutes = (shared: SharedByRoutes) => void;

interface IngressOptions {
  readonly store: IngressStore;
  readonly memorySource: MemorySource;
  readonly registry: Registry;
  readonly tracing?: Tracing | undefined;
  /** Serves HTTPS instead of HTTP. */
  readonly certificate?: Certificate | undefined;
  readonly log: Logger;
  /** Optional. Adds additional routes, for example those of the sandbox. */
  readonly addRoutes?: AddRoutes;
  readonly limits?: Partial<IngressLimits>;
  /** Returns the client's address. If omitted, there is no limit by address. */
  readonly addressOf?: ClientAddress | undefined;
  /** Returns a connection's address. If omitted, there is no limit of connections by address. */
  readonly connectionOf?: ConnectionAddress | undefined;
  /** See `createKeyChecks`. */
  readonly keysVersion?: (() => KeysVersion | undefined) | undefined;
  /** The number of events per second. By default, there are no limits. */
  readonly rates?: SenderRates;
  /** Wall clock in milliseconds, used to expire cache entries. */
  readonly nowMs?: () => number;
  /** Monotonic clock in milliseconds, used for limits. */
  readonly monotonicMs?: () => number;
  /** Clock of this machine in milliseconds, used to detect that the machine was suspended. */
  readonly wallMs?: () => number;
}

/** All batches fail with the same error while Redis is unavailable. */
const REPEATED_FAILURES = { lines: 1, periodMs: 10_000 };

const UNLIMITED: SenderRates = { perAddress: 0, perKey: 0, perWorkspace: 0 };

/** Response for browsers visiting the root path. */
const AT_THE_ROOT =
  'This path does not have any content. Send events to POST /events/{tenant}/{queue}. For a description, see /openapi.json. The facade serves /waas and its reference (/docs) at another address.';

/** Creates the HTTP server. The server has the route `POST /events/{tenant}/{queue}`. You can add more routes. */
export function createIngress(options: IngressOptions): Ingress {
  const { log, registry, tracing, addressOf, nowMs = Date.now, monotonicMs = () => performance.now() } = options;
  const limits: IngressLimits = { ...INGRESS_LIMITS, ...options.limits };
  const metrics = createIngressMetrics(registry);
  const answers = createAnswers(metrics, request => server.endsConnection(request));
  const logFailure = createFailureLog({ repeats: REPEATED_FAILURES, nowMs: monotonicMs });
  const onFailure: SharedByRoutes['onFailure'] = (operation, error) =>
    logFailure(log, 'warn', error, { operation }, 'store operation failed');
  const onError = (reply: EventReply, startedMs: number, error: unknown) => {
    logFailure(log, 'error', error, traceOf(reply.request), 'request failed');
    answers.sendProblem(reply, startedMs, 'internal');
  };
  const connections = limitConnections({ ...options, limits, metrics, monotonicMs });
  const server = createHttpServer({
    limits,
    connections,
    tracing,
    certificate: options.certificate,
    fastify: { routerOptions: { maxParamLength: 128 } },
    requireHostHeader: false,
    factsOfNoRoute,
    sendProblem: (reply, code, facts) => answers.sendProblem(reply, performance.now(), code, facts),
    onError: (error, _request, reply) => {
      const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500;
      if (status >= 500) return onError(reply, performance.now(), error);
      answers.sendProblem(reply, performance.now(), status === 414 ? 'uri_too_long' : 'malformed_request');
    },
    onPlainAnswer: status => metrics.countRequest(status, 0),
  });
  const { app } = server;
  serveOpenApi(app, () => document);
  // Routes read the bodies themselves, so that Fastify does not use the content type to parse them.
  for (const method of app.supportedMethods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });

  const memory = createMemoryStop({ source: options.memorySource, limits, log, onFailure, monotonicMs });
  const { batches, ...production } = createIntake(options.store, {
    limits,
    isPressed: memory.isPressed,
    keysVersion: options.keysVersion ?? (() => undefined),
    monotonicMs,
    wallMs: options.wallMs ?? Date.now,
    onFailure,
  });
  const { rates = UNLIMITED } = options;
  const senderLimits = createSenderLimits({ rates, addressOf, nowMs: monotonicMs, onRefused: metrics.countLimited });
  const shared = { ...production, senderLimits, memory, limits, onError };
  const budget = createByteBudget(limits.heldBytes, options.memorySource.masterOf);
  metrics.observeHeld(budget.held, limits.heldBytes);
  const admission = createAdmission({ ...shared, answers });
  const route = createEventRoute({ ...shared, admission, batches, budget, answers, metrics });
  app.post<{ Params: EventParams }>('/events/:tenant/:queue', route);
  options.addRoutes?.({ ...shared, app, registry, nowMs, endsConnection: server.endsConnection, onFailure });

  return {
    ...server,
    async listen(port, host) {
      await memory.start();
      return server.listen(port, host);
    },
    /** Also waits until all of the events that are in flight have been stored. */
    async close() {
      memory.stop();
      await server.close();
      await batches.idle();
    },
  };
}

/** Limits the connections, and counts them. Connections that are closed are logged once a minute. */
function limitConnections({
  connectionOf,
  limits,
  metrics,
  log,
  monotonicMs,
}: Pick<IngressOptions, 'connectionOf' | 'log'> & {
  limits: IngressLimits;
  metrics: IngressMetrics;
  monotonicMs: () => number;
}) {
  const { addressConnections: perAddress, connections: total } = limits;
  const logClosed = createClosedLog({ log, most: { address: perAddress, total }, nowMs: monotonicMs });
  const limit = createConnectionLimit({
    connectionOf,
    perAddress,
    total,
    onClosed(limit) {
      metrics.countClosedConnection(limit);
      logClosed(limit);
    },
  });
  metrics.observeConnections(limit.open);
  return limit;
}

/** Creates the caches for keys and queues, and the batches. All of them use the same store. */
function createIntake(
  store: IngressStore,
  options: {
    limits: IngressLimits;
    isPressed: MemoryStop['isPressed'];
    keysVersion: () => KeysVersion | undefined;
    monotonicMs: () => number;
    wallMs: () => number;
    onFailure: SharedByRoutes['onFailure'];
  },
) {
  const queues = createQueueCache({ ...options, readQueue: (tenant, queue) => store.readQueue(tenant, queue) });
  return {
    keys: createKeyChecks({ ...options, checkKey: (tenant, sha256) => store.checkKey(tenant, sha256) }),
    queues,
    batches: createBatches({
      ...options,
      async ingest(tenant, queue, config, items) {
        const stored = await store.ingest(tenant, queue, config, items);
        if (stored.queueNow !== undefined) queues.confirm(tenant, queue, config, stored.queueNow);
        return stored;
      },
    }),
  };
}

/** If a path does not have a route and we have a hint how to correct it, this returns the hint. */
function factsOfNoRoute(path: string): RefusalFacts {
  if (path === '/') return { detail: AT_THE_ROOT };
  if (/^\/(waas|docs)(\/|$)/.test(path)) {
    return {
      detail:
        'This address belongs to ingress. Send calls of /waas to the address of the REST API (the facade). If you do not know this address, ask the operator.',
    };
  }
  if (/^\/events\/.+\/$/.test(path)) return { detail: 'Remove the slash at the end of the path.' };
  return {};
}
