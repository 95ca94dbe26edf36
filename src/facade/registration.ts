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
import { payForLookups } from './caches/lookups.ts';
import type { RateLimit } from './contract/rate-limit.ts';
import { type AnyCall, accountOf, type Inside, reach } from './contract/reach.ts';
import { idempotencyKeyOf, keyedCallOf, performOnce } from './contract/repeated-calls.ts';
import { type AdditionalPoints, type Answer, bodyLimitOf, type Route } from './contract/route.ts';
import type { Turns } from './contract/turns.ts';
import { isPathParameter, validate, validatePath } from './contract/validate.ts';
import { messageOfUnknown } from './contract/validation-messages.ts';
import { createWaiter, createWaitingCalls, type WaitingCalls } from './contract/waiting-calls.ts';
import type { Facade } from './objects/facade.ts';
import { useShareOf } from './objects/redis-shares.ts';
import type { RunningCalls } from './running-calls.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Operation of the route. Undefined for paths without a route. */
    readonly operation?: string;
  }
}

/** Fastify request for a route. */
type Incoming = FastifyRequest<{ Params: Record<string, string>; Querystring: Record<string, unknown> }>;

/** The reason for ending a call. Without one, each call would create an exception with a stack. */
const GONE = 'the call has ended';
const CLOSING = 'the server stops';

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
  /** Aborted when the server stops. */
  readonly closing: AbortSignal;
  /** Charges the points of the call to an account, if there is one. */
  readonly charge: (account: string | undefined) => void;
  /** Charges additional points to the caller and an account or returns false. */
  readonly spend: (account: string | undefined, points: number) => boolean;
  /** Charges additional points to the caller and an account. */
  readonly chargeMore: (account: string | undefined, more: AdditionalPoints) => void;
  /** Waits until it is the turn of the call. Returns true if it had to wait. */
  readonly takeTurn: (account: string | undefined) => Promise<boolean>;
  /** Lets another call of the account start, because this call does not use the CPU from now on. */
  readonly leaveTurn: () => void;
}

async function perform(
  facade: Facade,
  route: Route,
  request: Incoming,
  signal: AbortSignal,
  { requireScopes, waiting, closing, charge, chargeMore, spend, takeTurn, leaveTurn }: CallChecks,
  seen: Seen,
): Promise<Answer> {
  const identity = identityOf(request);
  if (requireScopes && !identity.scopes.has(route.scope)) throw refuseScope(route.scope);
  validatePath(request.params);
  facade.caches.assertCurrent();
  const named = {
    identity,
    params: request.params,
    query: undefined,
    body: undefined,
    idempotencyKey: idempotencyKeyOf(request.headers),
    ifMatch: request.headers['if-match'],
    signal,
  } as AnyCall;
  /** Reaches the resources before any of the call's own work. */
  async function arrive(call: AnyCall): Promise<Inside> {
    const inside = await reach(facade, route, call);
    seen.inside = inside;
    charge(accountOf(inside));
    return (await takeTurn(accountOf(inside))) ? arriveAgain(call) : inside;
  }
  /** Reaches them again after the call has waited, because the access of the caller may have changed. */
  async function arriveAgain(call: AnyCall): Promise<Inside> {
    facade.caches.assertCurrent();
    seen.inside = await reach(facade, route, call);
    return seen.inside;
  }
  const byPath = 'tenant' in request.params || route.access !== 'producer';
  const reached = byPath ? await arrive(named) : undefined;
  const query =
    route.query === undefined ? validateNoQuery(request.query) : validate('query', route.query, request.query);
  const body = bodyOf(route, request);
  seen.body = body;
  const call = { ...named, query, body };
  const inside = reached ?? (await arrive(call));
  const spendMore = (points: number) => spend(accountOf(inside), points);
  const more = {
    spend: spendMore,
    charge: (points: AdditionalPoints) => chargeMore(accountOf(inside), points),
    waitFor: createWaiter({
      clock: facade.clock,
      waiting,
      caller: callerKey(identity),
      account: accountOf(inside),
      signal,
      closing,
      spend: spendMore,
      onWait: leaveTurn,
      checkAccess: () => arriveAgain(call),
    }),
  };
  const handle = (seed?: string) =>
    useShareOf({ account: accountOf(inside), signal, closes: route.closes === true }, async () =>
      route.handle(facade, { ...call, ...inside, ...more, seed } as typeof call),
    );
  const keyed = keyedCallOf(route, call, inside.tenant ?? inside.integration, accountOf(inside));
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
async function prepareBody({ headers, raw }: FastifyRequest): Promise<void> {
  // Tools such as `curl -d ''` always send a content type, but a body of 0 bytes does not have one.
  const isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
  if (isEmpty) delete raw.headers['content-type'];
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

/** Returns true if a call needs an audit line. Other reads are too frequent and don't change anything. */
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
    turns,
    calls,
    audit,
    requireScopes,
  }: {
    readonly rateLimit: RateLimit;
    readonly turns: Turns;
    readonly calls: RunningCalls;
    readonly audit: AuditTrail;
    readonly requireScopes: boolean;
  },
): void {
  const waiting = createWaitingCalls();
  const closing = new AbortController();
  scope.addHook('preClose', async () => closing.abort(CLOSING));
  for (const route of routes) {
    scope.route({
      method: route.method,
      url: fastifyPath(route.path),
      bodyLimit: bodyLimitOf(route),
      config: { cost: route.cost ?? 1, operation: route.operation },
      // Fastify adds a HEAD route to each GET route. GET and HEAD do not read a body.
      ...(route.method === 'GET' ? {} : { preParsing: prepareBody }),
      handler: (request, reply) =>
        calls.run(async () => {
          const gone = new AbortController();
          // The client may have left while it was authenticated.
          if (reply.raw.closed) gone.abort(GONE);
          else reply.raw.once('close', () => gone.abort(GONE));
          const seen: Seen = { changes: [] };
          const write = createAudit(facade, audit, route, request, seen);
          let leave = () => {};
          const checks = {
            requireScopes,
            waiting,
            closing: closing.signal,
            charge: (account: string | undefined) =>
              account === undefined ? undefined : rateLimit.chargeAccount(request, reply, account),
            spend: (account: string | undefined, points: number) => rateLimit.spend(request, reply, account, points),
            chargeMore: (account: string | undefined, more: AdditionalPoints) =>
              rateLimit.chargeMore(request, reply, account, more),
            async takeTurn(account: string | undefined) {
              const [identity, closes] = [identityOf(request), route.closes === true];
              const turn = await turns.take({ account, identity, closes, signal: gone.signal, response: reply.raw });
              leave = turn.leave;
              return turn.hasWaited;
            },
            leaveTurn: () => leave(),
          };
          try {
            const answer = await payForLookups(
              () => rateLimit.chargeLookup(request, reply),
              () => perform(facade, route, request as Incoming, gone.signal, checks, seen),
            );
            write({ status: answer.status, about: answer.about });
            return send(reply, answer);
          } catch (error) {
            const code = error instanceof Refusal ? error.code : 'internal';
            write({ status: PROBLEMS[code].status, code });
            throw error;
          } finally {
            leave();
          }
        }),
    });
  }
}

function send(reply: FastifyReply, { status, body, headers }: Answer): FastifyReply {
  reply.code(status).header('cache-control', 'no-store');
  if (headers !== undefined) reply.headers(headers);
  if (body === undefined) return reply.send();
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
}
