import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PROBLEMS } from '../core/problems/problems.ts';
import { faultOfCodings } from '../http/codings.ts';
import { Refusal } from '../http/refusal.ts';
import { accessGiven } from './audit/access.ts';
import type { CallFacts } from './audit/audit-line.ts';
import type { AuditTrail } from './audit/audit-trail.ts';
import { type Change, collectChanges } from './audit/changes.ts';
import { refuseScope } from './auth/challenge.ts';
import { callerKey, type Identity, identityOf } from './auth/identity.ts';
import type { RateLimit } from './contract/rate-limit.ts';
import { idempotencyKeyOf, keyedCallOf, performOnce } from './contract/repeated-calls.ts';
import { requireRole } from './contract/roles.ts';
import { type Access, type Answer, bodyLimitOf, type Call, type Route, roleOf } from './contract/route.ts';
import { isPathParameter, validate, validatePath } from './contract/validate.ts';
import { messageOfUnknown } from './contract/validation-messages.ts';
import { createWaiter, createWaitingCalls, type WaitingCalls } from './contract/waiting-calls.ts';
import type { Facade } from './objects/facade.ts';
import type { OwnedAccount, OwnedIntegration, OwnedTenant } from './objects/ownership.ts';
import { assertNotPaused } from './objects/paused.ts';
import { useShareOf } from './objects/redis-shares.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Operation of the route. Undefined for paths without a route. */
    readonly operation?: string;
  }
}

/** Fastify request for a route. */
type Incoming = FastifyRequest<{ Params: Record<string, string>; Querystring: Record<string, unknown> }>;

type AnyCall = Call<Access, string, unknown, unknown>;

/** The prefix of all paths. Added by the scope. */
const PREFIX = '/waas';

/** Converts a path such as `/waas/producer/{tenant}` to the Fastify format, relative to `/waas`. */
function fastifyPath(path: string): string {
  return path.slice(PREFIX.length).replaceAll(/\{(\w+)\}/g, ':$1');
}

function bodyOf(route: Route, request: FastifyRequest): unknown {
  // Undefined if no body was sent. `null` is a body, which all routes reject.
  const { body } = request;
  if (route.body !== undefined) {
    if (body === undefined && route.bodyOptional) return undefined;
    if (body === undefined) {
      throw new Refusal('invalid_request', 'Send a JSON body, with the header content-type: application/json.');
    }
    return validate('body', route.body, body);
  }
  const empty = typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0;
  if (body !== undefined && !empty) {
    const detail = ['This call does not accept a body. Send the request without a body.', route.bodyElsewhere ?? '']
      .join(' ')
      .trim();
    throw new Refusal('invalid_request', detail);
  }
  return undefined;
}

/** Returns the workspace specified in the query or the body. */
function namedTenant(...places: unknown[]): string | undefined {
  for (const place of places) {
    const id = (place as { producerTenantPublicId?: unknown } | undefined)?.producerTenantPublicId;
    if (typeof id === 'string') return id;
  }
  return undefined;
}

/**
 * Returns the resources that the caller may access according to the route. The path is validated before anything else
 * is read.
 */
async function reach(
  facade: Facade,
  route: Route,
  call: AnyCall,
): Promise<{ tenant?: OwnedTenant; integration?: OwnedIntegration; account?: OwnedAccount }> {
  const params = call.params as Readonly<Record<string, string>>;
  const pausable = route.method !== 'GET' && route.dataPlane !== true && route.closes !== true;
  if (route.access === 'producer') {
    const id = params['tenant'] ?? namedTenant(call.body, call.query);
    if (id === undefined)
      throw new Refusal(
        'invalid_request',
        'Add producerTenantPublicId, which is the id of your workspace (ten_ followed by 20 characters).',
      );
    const tenant = await facade.ownership.tenant(call, id);
    requireRole(tenant.role, roleOf(route));
    if (pausable) assertNotPaused(tenant.workspace);
    return { tenant };
  }
  if (route.access === 'recipient') {
    const integration = await facade.ownership.integration(call, params['integration'] as string);
    requireRole(integration.recipient.role, roleOf(route));
    if (pausable) {
      assertNotPaused(integration.recipient.workspace, facade.caches.get('Workspace', { name: integration.producer }));
    }
    return { integration };
  }
  if (route.access === 'account') {
    const account = await facade.ownership.account(call, params['account'] as string);
    requireRole(account.role, roleOf(route));
    return { account };
  }
  return {};
}

type Inside = Awaited<ReturnType<typeof reach>>;

/** Information about a call that was collected before responding. */
interface Seen {
  inside?: Inside;
  body?: unknown;
  readonly changes: Change[];
}

/** The state used to check a single call. */
interface CallChecks {
  readonly requireScopes: boolean;
  readonly waiting: WaitingCalls;
  /** Charges the caller for looking up an id on the API server. */
  readonly chargeLookup: () => void;
  /** Charges the points of the call to an account, if there is one. */
  readonly charge: (account: string | undefined) => void;
  /** Charges additional points to the caller and an account or returns false. */
  readonly spend: (account: string | undefined, points: number) => boolean;
}

/** Returns the account that owns the requested object, if it has one. */
function accountOf({ tenant, integration, account }: Inside): string | undefined {
  const { workspace } = tenant ?? integration?.recipient ?? {};
  return workspace === undefined ? account?.name : workspace.spec.account;
}

async function perform(
  facade: Facade,
  route: Route,
  request: Incoming,
  signal: AbortSignal,
  { requireScopes, waiting, charge, chargeLookup, spend }: CallChecks,
  seen: Seen,
): Promise<Answer> {
  const identity = identityOf(request);
  if (requireScopes && !identity.scopes.has(route.scope)) throw refuseScope(route.scope);
  validatePath(request.params);
  facade.caches.assertCurrent();
  const named = {
    identity,
    chargeLookup,
    params: request.params,
    query: undefined,
    body: undefined,
    idempotencyKey: idempotencyKeyOf(request.headers),
    signal,
  } as AnyCall;
  const byPath = 'tenant' in request.params || route.access !== 'producer';
  const reached = byPath ? await reach(facade, route, named) : undefined;
  if (reached !== undefined) {
    seen.inside = reached;
    charge(accountOf(reached));
  }
  const query =
    route.query === undefined ? validateNoQuery(request.query) : validate('query', route.query, request.query);
  const body = bodyOf(route, request);
  seen.body = body;
  const call = { ...named, query, body };
  const inside = reached ?? (await reach(facade, route, call));
  seen.inside = inside;
  if (reached === undefined) charge(accountOf(inside));
  const spendMore = (points: number) => spend(accountOf(inside), points);
  const more = {
    spend: spendMore,
    waitFor: createWaiter({ clock: facade.clock, waiting, caller: callerKey(identity), signal, spend: spendMore }),
  };
  const handle = (seed?: string) =>
    useShareOf({ account: accountOf(inside), signal, closes: route.closes === true }, async () =>
      route.handle(facade, { ...call, ...inside, ...more, seed } as typeof call),
    );
  const keyed = keyedCallOf(route, call, inside.tenant ?? inside.integration);
  return collectChanges(seen.changes, () =>
    keyed === undefined ? handle() : performOnce(facade.keyedCalls, keyed, handle),
  );
}

function validateNoQuery(query: Readonly<Record<string, unknown>>): undefined {
  const errors = Object.keys(query).map(parameter => ({
    parameter,
    detail: messageOfUnknown('parameter', parameter, []),
  }));
  if (errors.length > 0) throw new Refusal('invalid_request', { errors });
}

/** Returns the valid ids in a path. Other values are not logged, because they could contain anything. */
export function wellFormed(params: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(params).filter(([name, value]) => isPathParameter(name, value)));
}

/** Runs after authentication and the rate limit, and before the body is read. */
async function refuseCodedBody({ headers }: FastifyRequest): Promise<void> {
  const fault = faultOfCodings(headers);
  if (fault !== undefined) throw new Refusal('unsupported_media_type', fault);
}

/** Returns how the caller got access, or undefined if the call does not require access. */
function accessOf({ caches }: Facade, { access }: Route, identity: Identity, inside: Inside): CallFacts['access'] {
  if (access === 'account') return accessGiven(identity, undefined, inside.account?.object);
  const { workspace } = inside.tenant ?? inside.integration?.recipient ?? {};
  if (workspace === undefined) return undefined;
  return accessGiven(identity, workspace, caches.get('Account', { name: workspace.spec.account }));
}

/** Whether to write an audit line. Other reads are too frequent and don't change anything. */
const isAudited = ({ method, showsSecret = false }: Route) => method !== 'GET' || showsSecret;

/**
 * Creates the function that writes the audit line of a call. Calls rejected with 403 are written by the error handler,
 * along with all other calls without access.
 */
function createAudit(facade: Facade, audit: AuditTrail, route: Route, request: FastifyRequest, seen: Seen) {
  const startedMs = performance.now();
  return (outcome: Pick<CallFacts, 'status' | 'code' | 'about'>): void => {
    if (!isAudited(route) || outcome.status === 403) return;
    const identity = identityOf(request);
    audit.call({
      operation: route.operation,
      identity,
      access: seen.inside && accessOf(facade, route, identity, seen.inside),
      params: wellFormed(request.params as Record<string, string>),
      ...(route.dataPlane === true ? { body: seen.body } : {}),
      changes: seen.changes,
      requestId: request.id,
      traceparent: request.headers.traceparent as string | undefined,
      durationMs: performance.now() - startedMs,
      ...outcome,
    });
  };
}

/**
 * Registers `routes` in a scope where every request has an identity.
 *
 * @param checks.requireScopes whether the token must have the scope of the route
 */
export function registerRoutes(
  scope: FastifyInstance,
  routes: readonly Route[],
  facade: Facade,
  {
    rateLimit,
    audit,
    requireScopes,
  }: { readonly rateLimit: RateLimit; readonly audit: AuditTrail; readonly requireScopes: boolean },
): void {
  const waiting = createWaitingCalls();
  for (const route of routes) {
    scope.route({
      method: route.method,
      url: fastifyPath(route.path),
      bodyLimit: bodyLimitOf(route),
      config: { cost: route.cost ?? 1, operation: route.operation },
      // Fastify adds a HEAD route to each GET route. These methods do not read a body.
      ...(route.method === 'GET' ? {} : { preParsing: refuseCodedBody }),
      handler: async (request, reply) => {
        const gone = new AbortController();
        reply.raw.once('close', () => gone.abort());
        const seen: Seen = { changes: [] };
        const write = createAudit(facade, audit, route, request, seen);
        const checks = {
          requireScopes,
          waiting,
          chargeLookup: () => rateLimit.chargeLookup(request, reply),
          charge: (account: string | undefined) =>
            account === undefined ? undefined : rateLimit.chargeAccount(request, reply, account),
          spend: (account: string | undefined, points: number) => rateLimit.spend(request, reply, account, points),
        };
        try {
          const answer = await perform(facade, route, request as Incoming, gone.signal, checks, seen);
          write({ status: answer.status, about: answer.about });
          return send(reply, answer);
        } catch (error) {
          const code = error instanceof Refusal ? error.code : 'internal';
          write({ status: PROBLEMS[code].status, code });
          throw error;
        }
      },
    });
  }
}

function send(reply: FastifyReply, { status, body, headers }: Answer): FastifyReply {
  reply.code(status).header('cache-control', 'no-store');
  if (headers !== undefined) reply.headers(headers);
  if (body === undefined) return reply.send();
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
}
