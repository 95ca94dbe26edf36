import type { z } from 'zod';
import type { ProblemCode } from '../../core/problems/problems.ts';
import type { Identity } from '../auth/identity.ts';
import type { Facade } from '../objects/facade.ts';
import type { OwnedAccount, OwnedIntegration, OwnedTenant } from '../objects/ownership.ts';

/** The parameters of a path template: `/waas/producer/{tenant}/packages/{pkg}` has `tenant` and `pkg`. */
type ParamsOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name]: string } & ParamsOf<Rest>
  : unknown;

/**
 * What the caller must own. `producer`: the workspace in the path or the body; `recipient`: the receiving workspace of
 * the integration in the path; `account`: the account in the path; `caller`: nothing, any valid access token will do.
 */
export type Access = 'producer' | 'recipient' | 'account' | 'caller';

interface Reached {
  readonly producer: { readonly tenant: OwnedTenant };
  readonly recipient: { readonly integration: OwnedIntegration };
  readonly account: { readonly account: OwnedAccount };
  readonly caller: unknown;
}

/** One validated request. */
export type Call<A extends Access, Path extends string, Q, B> = Reached[A] & {
  readonly identity: Identity;
  readonly params: ParamsOf<Path>;
  readonly query: Q;
  readonly body: B;
  /** Value of `Idempotency-Key`, if one was sent. */
  readonly idempotencyKey: string | undefined;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
};

/** The successful answer of a route. `about` names the written object for the audit line. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Kind and name of the object that was written. */
  readonly about?: { readonly kind: string; readonly namespace?: string | undefined; readonly name: string };
}

/** The shape of a successful answer, for tests and for the OpenAPI document. */
interface AnswerShape {
  readonly description: string;
  /** Absent: no body. */
  readonly schema?: z.ZodType;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouteSource<A extends Access, Path extends string, Q extends z.ZodType, B extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** OpenAPI path template: parameters in braces, each a key of PATH_PARAMETERS. */
  readonly path: Path;
  readonly access: A;
  /** Name of the operation: verb and noun, camelCase. */
  readonly operation: string;
  /** Group in the reference: `Streams`. */
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: Q;
  readonly body?: B;
  /** True: the body is optional. */
  readonly bodyOptional?: boolean;
  /** True: the body contains a list or a schema and may have `LARGE_BODY_BYTES`. */
  readonly largeBody?: boolean;
  /** For a route without a body: names the call that takes the body a caller may have meant. */
  readonly bodyElsewhere?: string;
  readonly answers: Readonly<Record<number, AnswerShape>>;
  /** True: writes no custom resource, so it works in a paused workspace. */
  readonly dataPlane?: boolean;
  /** True: only closes something open, so it works in a paused workspace. */
  readonly closes?: boolean;
  /** Problems of this route, beside those of every route. */
  readonly problems?: readonly ProblemCode[];
  readonly handle: (facade: Facade, call: Call<A, Path, z.output<Q>, z.output<B>>) => Promise<Answer>;
}

/** A route without its type parameters, for the server, the reference and the tests. */
export interface Route extends Omit<RouteSource<Access, string, z.ZodType, z.ZodType>, 'handle'> {
  readonly handle: (facade: Facade, call: Call<Access, string, unknown, unknown>) => Promise<Answer>;
}

/** Maximum bytes of a body. */
export const BODY_BYTES = 16_384;
/** Maximum bytes of a body with a list or a schema. */
const LARGE_BODY_BYTES = 1_048_576;

/** Returns the body limit of the route in bytes. */
export function bodyLimitOf({ largeBody = false }: Pick<Route, 'largeBody'>): number {
  return largeBody ? LARGE_BODY_BYTES : BODY_BYTES;
}

/** Declares a route. The types of path, query and body derive from the declaration. */
export function defineRoute<
  A extends Access,
  const Path extends string,
  Q extends z.ZodType = z.ZodType<Record<string, never>>,
  B extends z.ZodType = z.ZodType<undefined>,
>(source: RouteSource<A, Path, Q, B>): Route {
  return source as unknown as Route;
}
