import type { z } from 'zod';
import type { ProblemCode } from '../../core/problems/problems.ts';
import type { Identity } from '../auth/identity.ts';
import type { Facade } from '../objects/facade.ts';
import type { OwnedAccount, OwnedIntegration, OwnedTenant } from '../objects/ownership.ts';

/** Parameters of a path template: `/waas/producer/{tenant}/packages/{pkg}` has `tenant` and `pkg`. */
export type ParamsOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name]: string } & ParamsOf<Rest>
  : unknown;

/**
 * Whose the called thing has to be. `producer`: the workspace that the path or the body names; `recipient`: the workspace
 * that receives the integration of the path; `account`: the account of the path; `caller`: anybody with a token.
 */
export type Access = 'producer' | 'recipient' | 'account' | 'caller';

interface Reached {
  readonly producer: { readonly tenant: OwnedTenant };
  readonly recipient: { readonly integration: OwnedIntegration };
  readonly account: { readonly account: OwnedAccount };
  readonly caller: unknown;
}

/** One request, checked: who asks, for what, with what. */
export type Call<A extends Access, Path extends string, Q, B> = Reached[A] & {
  readonly identity: Identity;
  readonly params: ParamsOf<Path>;
  readonly query: Q;
  readonly body: B;
  /** Value of `Idempotency-Key`, if one was sent. */
  readonly idempotencyKey: string | undefined;
  /** Aborts when the caller has gone away. */
  readonly signal: AbortSignal;
};

/** What a route answers when it succeeds. `about` names what was done to which object, for the audit line. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Kind and name of the object that was written. */
  readonly about?: { readonly kind: string; readonly namespace?: string | undefined; readonly name: string };
}

/** What a successful answer looks like, for validation by tests and for the OpenAPI document. */
export interface AnswerShape {
  readonly description: string;
  /** Absent: no body. */
  readonly schema?: z.ZodType;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouteSource<A extends Access, Path extends string, Q extends z.ZodType, B extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Template of OpenAPI: parameters in braces, each named in PATH_PARAMETERS. */
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
  /** True: the body may be left out. */
  readonly bodyOptional?: boolean;
  /** True: the body holds a list or a schema, and may have `LARGE_BODY_BYTES`. */
  readonly largeBody?: boolean;
  /** Of a route without a body: which call takes the one that a caller may have meant. */
  readonly bodyElsewhere?: string;
  readonly answers: Readonly<Record<number, AnswerShape>>;
  /** True: writes no custom resource, so that a paused workspace does not stand in the way. */
  readonly dataPlane?: boolean;
  /** True: the call only closes what is open, so that a paused workspace does not stand in the way. */
  readonly closes?: boolean;
  /** Problems of this route alone; those that every route may have are not repeated. */
  readonly problems?: readonly ProblemCode[];
  readonly handle: (facade: Facade, call: Call<A, Path, z.output<Q>, z.output<B>>) => Promise<Answer>;
}

/** A route as the server, the reference and the tests know it. */
export interface Route extends Omit<RouteSource<Access, string, z.ZodType, z.ZodType>, 'handle'> {
  readonly handle: (facade: Facade, call: Call<Access, string, unknown, unknown>) => Promise<Answer>;
}

/** Most bytes of a body. */
export const BODY_BYTES = 16_384;
/** The same where a body holds a list or a schema. */
export const LARGE_BODY_BYTES = 1_048_576;

/** Returns the most bytes that a body of the route may have. */
export function bodyLimitOf({ largeBody = false }: Pick<Route, 'largeBody'>): number {
  return largeBody ? LARGE_BODY_BYTES : BODY_BYTES;
}

/** Declares a route; the types of path, query and body follow from what is declared. */
export function defineRoute<
  A extends Access,
  const Path extends string,
  Q extends z.ZodType = z.ZodType<Record<string, never>>,
  B extends z.ZodType = z.ZodType<undefined>,
>(source: RouteSource<A, Path, Q, B>): Route {
  return source as unknown as Route;
}
