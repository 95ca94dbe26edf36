import type { z } from 'zod';
import type { ProblemCode } from '../../core/problems/problems.ts';
import type { AuditedObject } from '../audit/audit-line.ts';
import type { Identity } from '../auth/identity.ts';
import type { Role } from '../auth/ownership.ts';
import type { Scope } from '../auth/scopes.ts';
import type { Facade } from '../objects/facade.ts';
import type { OwnedAccount, OwnedIntegration, OwnedTenant } from '../objects/ownership.ts';

/** The sections of the reference, with their descriptions. */
export const TAGS = {
  Streams: 'Publish streams as a producer.',
  Integrations: 'Invite partners and end integrations as a producer.',
  Invitations: 'Accept or decline the invitation of a producer, as a partner.',
  Workspaces: 'List your workspaces. A workspace publishes streams, receives events, or both.',
  'Ingress keys': 'Manage the keys with which a workspace publishes events.',
  Accounts:
    'Look up the accounts that pay for your workspaces, with their limits and tokens, and manage their members.',
  Packages: 'Group streams into packages, so that you can block them together.',
  Blocks: 'Pause a stream or a package for an integration.',
  Activations: 'Open a group key for an integration. The partner only receives events with an open group key.',
  Events: 'Find out where an event was routed to, and why it did not arrive.',
  Metrics: 'Count the events that were published, routed, and delivered over time.',
  Receiving: 'Subscribe to streams and manage your endpoints and signing secrets, as a partner.',
  Inbox: 'Read, pull, skip, and replay the events that were routed to your subscriptions.',
} as const satisfies Readonly<Record<string, string>>;

export type Tag = keyof typeof TAGS;

/** The parameters of a path template. For example, `/waas/producer/{tenant}/packages/{pkg}` has `tenant` and `pkg`. */
type ParamsOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name]: string } & ParamsOf<Rest>
  : unknown;

/**
 * Resource that must be owned by the caller: the workspace in the path or body (`producer`), the receiving workspace of
 * the integration in the path (`recipient`), or the account in the path (`account`). Use `caller` to accept any valid
 * access token.
 */
export type Access = 'producer' | 'recipient' | 'account' | 'caller';

interface Reached {
  readonly producer: { readonly tenant: OwnedTenant };
  readonly recipient: { readonly integration: OwnedIntegration };
  readonly account: { readonly account: OwnedAccount };
  readonly caller: unknown;
}

/**
 * The number of points charged for a call: 1 for most calls, 5 for calls that read or change many objects or events,
 * and 10 for calls that may need to read thousands of them.
 */
export type CallCost = 1 | 5 | 10;

/** The additional points of a call, and the text for its refusal. */
export interface AdditionalPoints {
  readonly points: number;
  /** The work that costs these points, as the start of a sentence. */
  readonly what: string;
  /** A sentence about how to avoid this work, if possible. */
  readonly remedy?: string;
}

/** Validated request. */
export type Call<A extends Access, Path extends string, Q, B> = Reached[A] & {
  readonly identity: Identity;
  readonly params: ParamsOf<Path>;
  readonly query: Q;
  readonly body: B;
  /** The value of the `Idempotency-Key` header, if there is one. */
  readonly idempotencyKey: string | undefined;
  /** The value of the `If-Match` header, if there is one. Routes without `conditional` ignore it. */
  readonly ifMatch: string | undefined;
  /**
   * Random text that is the same for each attempt to perform this call, if the route stores responses and an
   * `Idempotency-Key` was sent. Anything created by the call should be derived from this text, so that an interrupted
   * call is completed when it is repeated.
   */
  readonly seed: string | undefined;
  /**
   * Charges additional points if a call needs to do more than included in its cost. Returns false if the caller or the
   * account doesn't have enough points. In this case, the call should return the results found so far.
   */
  readonly spend: (points: number) => boolean;
  /**
   * Charges additional points for work that a call can't do without.
   *
   * @throws Refusal 429 `rate_limited` if the caller or the account doesn't have enough points
   */
  readonly charge: (more: AdditionalPoints) => void;
  /** Signal that is aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  /**
   * Calls `ask` until its result is sufficient, for up to `waitSeconds`. Returns the last result. All calls that are
   * held open on request must use this function because the number of waiting calls is limited for each caller.
   */
  readonly waitFor: <T>(waitSeconds: number, ask: () => Promise<T>, isEnough: (answer: T) => boolean) => Promise<T>;
};

/** Response to a successful request. `about` is the written object, for use in the audit line. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Kind and name of the written object. */
  readonly about?: AuditedObject;
}

/** The format of a successful response. Used for tests and for the OpenAPI document. */
interface AnswerShape {
  readonly description: string;
  /** The body schema. If unset, the response has no body. */
  readonly schema?: z.ZodType;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouteSource<A extends Access, Path extends string, Q extends z.ZodType, B extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** OpenAPI path template. Parameters are written in braces and must be keys of PATH_PARAMETERS. */
  readonly path: Path;
  readonly access: A;
  /**
   * Scope that the token must have, if scopes are required. Also determines the role that the caller needs: any role
   * for `waas:read`, and Admin for everything else.
   */
  readonly scope: Scope;
  /** Set to `Owner` if only Owners may make the call. */
  readonly role?: 'Owner';
  /** The name of the operation in camelCase. The name should consist of a verb and a noun. */
  readonly operation: string;
  /** The name of the group in the reference, e.g. `Streams`. */
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  readonly query?: Q;
  readonly body?: B;
  /** True if the body can be omitted. */
  readonly bodyOptional?: boolean;
  /** True if the body contains a list or a schema, so that its limit is `LARGE_BODY_BYTES`. */
  readonly largeBody?: boolean;
  /**
   * The call that accepts a body, for routes without one. The error message for a body names it.
   */
  readonly bodyElsewhere?: string;
  readonly answers: Readonly<Record<number, AnswerShape>>;
  /**
   * Set to true if the route doesn't write custom resources. In this case, it can also be used while the workspace is
   * paused.
   */
  readonly dataPlane?: boolean;
  /** Set to true for a GET route whose response contains a secret. Such calls are audited like changes. */
  readonly showsSecret?: boolean;
  /**
   * Specifies how the route uses the `Idempotency-Key`. `answer` means that repeating the call would have a different
   * effect. Such a call is performed once for each key. Its response is stored. `replay` means that the key is used as
   * the replay id. Not set if a call can be repeated without a key.
   */
  readonly idempotency?: 'answer' | 'replay';
  /** Set to true if the route compares the `If-Match` header with the entity tag of the resource. */
  readonly conditional?: boolean;
  /**
   * Set to true if the route does nothing but close an open resource. In this case, it can also be used while the
   * workspace is paused.
   */
  readonly closes?: boolean;
  /** The default is 1. */
  readonly cost?: CallCost;
  /** Problems specific to this route, on top of those for all routes. */
  readonly problems?: readonly ProblemCode[];
  readonly handle: (facade: Facade, call: Call<A, Path, z.output<Q>, z.output<B>>) => Promise<Answer>;
}

/** A route without type parameters, as used by the server, the reference, and the tests. */
export interface Route extends Omit<RouteSource<Access, string, z.ZodType, z.ZodType>, 'handle'> {
  readonly handle: (facade: Facade, call: Call<Access, string, unknown, unknown>) => Promise<Answer>;
}

/** Returns the weakest role that can call this route. */
export function roleOf({ scope, role }: Pick<Route, 'scope' | 'role'>): Role {
  return role ?? (scope === 'waas:read' ? 'Viewer' : 'Admin');
}

/** The maximum body size in bytes. */
export const BODY_BYTES = 16_384;
/** The maximum size in bytes for a body containing a list or a schema. */
const LARGE_BODY_BYTES = 1_048_576;

/** Returns the maximum size of the body for this route, in bytes. */
export function bodyLimitOf({ largeBody = false }: Pick<Route, 'largeBody'>): number {
  return largeBody ? LARGE_BODY_BYTES : BODY_BYTES;
}

/** Declares a new route. Types for the path, query, and body are inferred from the declaration. */
export function defineRoute<
  A extends Access,
  const Path extends string,
  Q extends z.ZodType = z.ZodType<Record<string, never>>,
  B extends z.ZodType = z.ZodType<undefined>,
>(source: RouteSource<A, Path, Q, B>): Route {
  return source as unknown as Route;
}
