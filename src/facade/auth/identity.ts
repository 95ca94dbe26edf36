import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type ClientClaim, clientOf } from './client-rules.ts';
import { scopesOf } from './scopes.ts';

/** Identity is the caller of a request as given by the verified token. */
export interface Identity {
  /** The unchanged `iss` claim. */
  readonly issuer: string;
  /** The `sub` claim. */
  readonly subject: string;
  /** The `groups` claim. If it is not an array of strings, this is empty. */
  readonly groups: readonly string[];
  /** The client that the token stands for. This is undefined if it stands for a person, whichever client they use. */
  readonly client: string | undefined;
  /** The `email` claim. This is undefined unless `email_verified` is true. */
  readonly email?: string | undefined;
  /** The scopes that the token has. */
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

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Returns the caller key. It is different for each caller. */
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

/** Returns the caller identity. If the request has not been authenticated, this returns undefined. */
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
