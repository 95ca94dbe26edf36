import type { z } from 'zod';
import type { ProblemCode } from '../../core/problems/problems.ts';
import type { Identity } from '../auth/identity.ts';
import type { Facade } from '../objects/facade.ts';
import type { OwnedAccount, OwnedIntegration, OwnedTenant } from '../objects/ownership.ts';

/**
 * The parameters of a path template. For example, `/waas/producer/{tenant}/packages/{pkg}` has the parameters `tenant`
 * and `pkg`.
 */
type ParamsOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name]: string } & ParamsOf<Rest>
  : unknown;

/**
 * The resource that the caller must own. For `producer`, this is the workspace in the path or the body. For
 * `recipient`, it is the receiving workspace of the integration in the path. For `account`, it is the account in the
 * path. If it is `caller`, any valid access token is accepted.
 */
export type Access = 'producer' | 'recipient' | 'account' | 'caller';

interface Reached {
  readonly producer: { readonly tenant: OwnedTenant };
  readonly recipient: { readonly integration: OwnedIntegration };
  readonly account: { readonly account: OwnedAccount };
  readonly caller: unknown;
}

/** A request that was validated. */
export type Call<A extends Access, Path extends string, Q, B> = Reached[A] & {
  readonly identity: Identity;
  readonly params: ParamsOf<Path>;
  readonly query: Q;
  readonly body: B;
  /** The value of the `Idempotency-Key` header, if it was sent. */
  readonly idempotencyKey: string | undefined;
  /** A signal that is aborted when the caller disconnects. */
  readonly signal: AbortSignal;
};

/** The answer of a successful request. `about` is the written object for the audit line. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The kind and name of the written object. */
  readonly about?: { readonly kind: string; readonly namespace?: string | undefined; readonly name: string };
}

/** The format of a successful answer. It is used in tests and in the OpenAPI document. */
interface AnswerShape {
  readonly description: string;
  /** The schema of the body. If it is not set, the answer has no body. */
  readonly schema?: z.ZodType;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouteSource<A extends Access, Path extends string, Q extends z.ZodType, B extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The OpenAPI path template. The parameters are in braces and must be keys of PATH_PARAMETERS. */
  readonly path: Path;
  readonly access: A;
  /** The name of the operation in camelCase, which consists of a verb and a noun. */
  readonly operation: string;
  /** The name of the group in the reference, such as `Streams`. */
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: Q;
  readonly body?: B;
  /** If this is true, the body is optional. */
  readonly bodyOptional?: boolean;
  /** If this is true, the body contains a list or a schema and is limited to `LARGE_BODY_BYTES`. */
  readonly largeBody?: boolean;
  /**
   * The call that accepts a body. It is included in the error message if a caller sends a body to a route that does not
   * accept one.
   */
  readonly bodyElsewhere?: string;
  readonly answers: Readonly<Record<number, AnswerShape>>;
  /** If this is true, the route does not write custom resources. It can then be used in a paused workspace. */
  readonly dataPlane?: boolean;
  /** If this is true, the route only closes an open resource. It can then be used in a paused workspace. */
  readonly closes?: boolean;
  /** The problems of this route in addition to those of all routes. */
  readonly problems?: readonly ProblemCode[];
  readonly handle: (facade: Facade, call: Call<A, Path, z.output<Q>, z.output<B>>) => Promise<Answer>;
}

/** A route without its type parameters. It is used by the server, the reference and the tests. */
export interface Route extends Omit<RouteSource<Access, string, z.ZodType, z.ZodType>, 'handle'> {
  readonly handle: (facade: Facade, call: Call<Access, string, unknown, unknown>) => Promise<Answer>;
}

/** The maximum size of a body in bytes. */
export const BODY_BYTES = 16_384;
/** The maximum size in bytes of a body that contains a list or a schema. */
const LARGE_BODY_BYTES = 1_048_576;

/** Returns the maximum body size of the route in bytes. */
export function bodyLimitOf({ largeBody = false }: Pick<Route, 'largeBody'>): number {
  return largeBody ? LARGE_BODY_BYTES : BODY_BYTES;
}

/** Declares a route. The types of the path, the query and the body are inferred from the declaration. */
export function defineRoute<
  A extends Access,
  const Path extends string,
  Q extends z.ZodType = z.ZodType<Record<string, never>>,
  B extends z.ZodType = z.ZodType<undefined>,
>(source: RouteSource<A, Path, Q, B>): Route {
  return source as unknown as Route;
}
