import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type ClientClaim, clientOf, isText } from './client-rules.ts';
import { scopesOf } from './scopes.ts';

/** Identity is the caller of a request as given by the verified token. */
export interface Identity {
  /** The unchanged `iss` claim. */
  readonly issuer: string;
  /** The `sub` claim. */
  readonly subject: string;
  /** The `groups` claim. Empty if the claim is not an array of strings. */
  readonly groups: readonly string[];
  /**
   * The client that the token represents. Undefined if the token represents a person regardless of the client they are
   * using.
   */
  readonly client: string | undefined;
  /** The `email` claim. Undefined unless `email_verified` is true. */
  readonly email?: string | undefined;
  /** The scopes of the token. */
  readonly scopes: ReadonlySet<string>;
}

/**
 * Reads the identity from token claims.
 *
 * @param clientClaims claims that mark tokens of clients, in addition to those that are always recognized
 * @throws TypeError if `iss` or `sub` is missing, i.e. the claims were never verified
 */
export function readIdentity(
  claims: Readonly<Record<string, unknown>>,
  clientClaims: readonly ClientClaim[] = [],
): Identity {
  const { iss, sub, groups, email, email_verified: verified } = claims;
  if (!isText(iss) || !isText(sub)) throw new TypeError('claims without iss or sub');
  const named = Array.isArray(groups) && groups.every(group => typeof group === 'string');
  return Object.freeze({
    issuer: iss,
    subject: sub,
    groups: Object.freeze(named ? [...(groups as string[])] : []),
    client: clientOf(claims, clientClaims),
    email: isText(email) && verified === true ? email : undefined,
    scopes: scopesOf(claims),
  });
}

/** Returns the caller key, which is different for each caller. */
export function callerKey({ issuer, subject }: Identity): string {
  return JSON.stringify([issuer, subject]);
}

const IDENTITY = Symbol('identity');

/** Adds the identity property to requests in the scope. */
export function declareIdentity(scope: FastifyInstance): void {
  scope.decorateRequest(IDENTITY, null);
}

export function setIdentity(request: FastifyRequest, identity: Identity): void {
  request.setDecorator<Identity>(IDENTITY, identity);
}

/** Returns the caller identity. Returns undefined if the request has not been authenticated. */
export function findIdentity(request: FastifyRequest): Identity | undefined {
  return (request as { readonly [IDENTITY]?: Identity | null })[IDENTITY] ?? undefined;
}

/**
 * Returns the caller identity.
 *
 * @throws Error if the request was not authenticated because its route lies outside the guarded scope
 */
export function identityOf(request: FastifyRequest): Identity {
  const identity = request.getDecorator<Identity | null>(IDENTITY);
  if (identity === null) throw new Error('the request has no identity');
  return identity;
}
