import type { FastifyInstance, FastifyRequest } from 'fastify';

/** The caller, from a verified token. */
export interface Identity {
  /** `iss`, byte for byte. */
  readonly issuer: string;
  /** `sub`. */
  readonly subject: string;
  /** `groups` if it is an array of strings; else empty. */
  readonly groups: readonly string[];
  /** `client_id`, else `azp`; undefined if neither is text. */
  readonly client: string | undefined;
}

/** Reads the identity from claims. @throws TypeError if `iss` or `sub` is missing: the claims were not verified */
export function readIdentity(claims: Readonly<Record<string, unknown>>): Identity {
  const { iss, sub, groups, client_id: clientId, azp } = claims;
  if (!isText(iss) || !isText(sub)) throw new TypeError('claims without iss or sub');
  const named = Array.isArray(groups) && groups.every(group => typeof group === 'string');
  return Object.freeze({
    issuer: iss,
    subject: sub,
    groups: Object.freeze(named ? [...(groups as string[])] : []),
    client: [clientId, azp].find(isText),
  });
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

const IDENTITY = Symbol('identity');

/** Declares the identity property on every request of the scope. */
export function declareIdentity(scope: FastifyInstance): void {
  scope.decorateRequest(IDENTITY, null);
}

export function setIdentity(request: FastifyRequest, identity: Identity): void {
  request.setDecorator<Identity>(IDENTITY, identity);
}

/**
 * Returns the identity. @throws Error if the request was not authenticated: its route is outside the guarded scope (a
 * defect)
 */
export function identityOf(request: FastifyRequest): Identity {
  const identity = request.getDecorator<Identity | null>(IDENTITY);
  if (identity === null) throw new Error('the request has no identity');
  return identity;
}
