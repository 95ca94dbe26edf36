import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Who asks, as a verified token says it. */
export interface Identity {
  /** `iss`, byte for byte. */
  readonly issuer: string;
  /** `sub`. */
  readonly subject: string;
  /** `groups`, if that is an array of strings; else none. */
  readonly groups: readonly string[];
  /** `client_id`, else `azp`; undefined when neither is a text. */
  readonly client: string | undefined;
}

/** @throws TypeError when `iss` or `sub` is missing: the claims were not verified */
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

/** Declares the place for the identity on every request of the scope. */
export function declareIdentity(scope: FastifyInstance): void {
  scope.decorateRequest(IDENTITY, null);
}

export function setIdentity(request: FastifyRequest, identity: Identity): void {
  request.setDecorator<Identity>(IDENTITY, identity);
}

/** @throws Error when the request was not authenticated: a route outside of the guarded scope, which is a defect */
export function identityOf(request: FastifyRequest): Identity {
  const identity = request.getDecorator<Identity | null>(IDENTITY);
  if (identity === null) throw new Error('the request has no identity');
  return identity;
}
