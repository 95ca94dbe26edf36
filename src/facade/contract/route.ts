import type { z } from 'zod';
import type { ProblemCode } from '../../core/problems/problems.ts';
import type { AuditedObject } from '../audit/audit-line.ts';
import type { Identity } from '../auth/identity.ts';
import type { Role } from '../auth/ownership.ts';
import type { Scope } from '../auth/scopes.ts';
import type { Facade } from '../objects/facade.ts';
import type { OwnedAccount, OwnedIntegration, OwnedTenant } from '../objects/ownership.ts';

/** Parameters of a path template. For example, `/waas/producer/{tenant}/packages/{pkg}` has `tenant` and `pkg`. */
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
 * Points that a call costs of the rate limit: 1 for most calls, 5 for those that read or change many objects or events
 * at once, 10 for those that may look at thousands of them.
 */
export type CallCost = 1 | 5 | 10;

/** Validated request. */
export type Call<A extends Access, Path extends string, Q, B> = Reached[A] & {
  readonly identity: Identity;
  /** Takes the points for asking the API server for an id. Passed to Ownership, along with the identity. */
  readonly chargeLookup: () => void;
  readonly params: ParamsOf<Path>;
  readonly query: Q;
  readonly body: B;
  /** Value of the `Idempotency-Key` header, if sent. */
  readonly idempotencyKey: string | undefined;
  /**
   * Random text that is the same for each attempt to perform this call, if the route stores answers and an
   * `Idempotency-Key` was sent. Derive what the call creates from it, so that a repetition completes a call that was
   * interrupted.
   */
  readonly seed: string | undefined;
  /**
   * Takes more points of the rate limit, for a call that turns out to do more than its cost covers. Returns false if the
   * caller or its account has too few left. The call then answers what it has.
   */
  readonly spend: (points: number) => boolean;
  /** Signal that is aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  /**
   * Waits for up to `waitSeconds` until the answer of `ask` is enough, and returns the last answer. Every call that is
   * held open on request must wait with this function, because the number of waiting calls is limited for each caller.
   */
  readonly waitFor: <T>(waitSeconds: number, ask: () => Promise<T>, isEnough: (answer: T) => boolean) => Promise<T>;
};

/** Answer to a successful request. `about` is the written object, for use in the audit line. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Kind and name of the written object. */
  readonly about?: AuditedObject;
}

/** Format of a successful answer, used in tests and the OpenAPI document. */
interface AnswerShape {
  readonly description: string;
  /** Schema of the body. If unset, the answer has no body. */
  readonly schema?: z.ZodType;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouteSource<A extends Access, Path extends string, Q extends z.ZodType, B extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** OpenAPI path template. Parameters are in braces and must be keys of PATH_PARAMETERS. */
  readonly path: Path;
  readonly access: A;
  /**
   * Scope that the token must have, if scopes are required. Also determines the role that the caller needs: any role
   * for `waas:read`, and Admin for everything else.
   */
  readonly scope: Scope;
  /** Set to `Owner` if only Owners may make the call. */
  readonly role?: 'Owner';
  /** Operation name in camelCase, made up of a verb and a noun. */
  readonly operation: string;
  /** Name of the group in the reference, e.g. `Streams`. */
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: Q;
  readonly body?: B;
  /** Whether the body is optional. */
  readonly bodyOptional?: boolean;
  /** Whether the body contains a list or a schema. If so, it is limited to `LARGE_BODY_BYTES`. */
  readonly largeBody?: boolean;
  /**
   * Call that accepts a body. We mention it in the error message if a body is sent to a route that doesn't accept one.
   */
  readonly bodyElsewhere?: string;
  readonly answers: Readonly<Record<number, AnswerShape>>;
  /** Set to true if the route doesn't write custom resources. Makes it available in paused workspaces. */
  readonly dataPlane?: boolean;
  /** Set to true for a GET route whose answer contains a secret. Such calls are audited like changes. */
  readonly showsSecret?: boolean;
  /**
   * How the route uses an `Idempotency-Key`. `answer`: repeating the call would have another effect, so it is performed
   * once for each key and its answer is stored. `replay`: the key is the id of the replay. Not set if the call can be
   * repeated without a key.
   */
  readonly idempotency?: 'answer' | 'replay';
  /** Set to true if the route does nothing but close an open resource. Makes it available in paused workspaces. */
  readonly closes?: boolean;
  /** Defaults to 1. */
  readonly cost?: CallCost;
  /** Problems specific to this route, on top of those for all routes. */
  readonly problems?: readonly ProblemCode[];
  readonly handle: (facade: Facade, call: Call<A, Path, z.output<Q>, z.output<B>>) => Promise<Answer>;
}

/** Route without its type parameters, for use by the server, the reference, and tests. */
export interface Route extends Omit<RouteSource<Access, string, z.ZodType, z.ZodType>, 'handle'> {
  readonly handle: (facade: Facade, call: Call<Access, string, unknown, unknown>) => Promise<Answer>;
}

/** Returns the weakest role with which the route can be called. */
export function roleOf({ scope, role }: Pick<Route, 'scope' | 'role'>): Role {
  return role ?? (scope === 'waas:read' ? 'Viewer' : 'Admin');
}

/** Maximum body size in bytes. */
export const BODY_BYTES = 16_384;
/** Maximum size in bytes for a body containing a list or a schema. */
const LARGE_BODY_BYTES = 1_048_576;

/** Returns the maximum body size for the route in bytes. */
export function bodyLimitOf({ largeBody = false }: Pick<Route, 'largeBody'>): number {
  return largeBody ? LARGE_BODY_BYTES : BODY_BYTES;
}

/** Declares a route. Types for the path, query, and body are inferred from the declaration. */
export function defineRoute<
  A extends Access,
  const Path extends string,
  Q extends z.ZodType = z.ZodType<Record<string, never>>,
  B extends z.ZodType = z.ZodType<undefined>,
>(source: RouteSource<A, Path, Q, B>): Route {
  return source as unknown as Route;
}
