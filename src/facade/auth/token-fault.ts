import type { UnverifiedToken } from './bearer-token.ts';

/** TokenRules defines which tokens are accepted. */
export interface TokenRules {
  /** Accepted issuers. Must match the `iss` claim byte by byte. */
  readonly issuers: readonly string[];
  readonly audience: string;
  /** Accepted asymmetric signing algorithms (RFC 7518). */
  readonly algorithms: readonly string[];
  /** The maximum clock skew between Sluice and the issuer, in both directions. */
  readonly clockToleranceSeconds: number;
  /** The maximum age of a token, based on its issue time (`iat`). If not set, tokens are accepted until they expire. */
  readonly maxAgeSeconds?: number | undefined;
}

/**
 * The start of the `error_description` for each fault. Since these are constants, a response never contains parts of
 * the token.
 */
export const FAULTS = {
  malformed: 'The token is not a signed JWT in compact form (ingress keys are not accepted)',
  type: 'The token is not an access token',
  critical: 'The token requires unsupported extensions',
  algorithm: 'The signing algorithm of the token is not supported',
  key: 'The token is not signed with a key of its issuer',
  issuer: 'The issuer of the token is not accepted',
  audience: 'The token has a different audience',
  expired: 'The token has expired or does not have an expiry',
  early: 'The token is not valid yet',
  old: 'The token was issued too long ago or does not have a time of issue (iat)',
  bound: 'The token is bound to a key or a certificate (cnf) and cannot be used as a bearer token',
  subject: 'The token does not contain a valid subject',
  signature: 'The signature of the token is not valid',
} as const;

export type TokenFault = keyof typeof FAULTS;

/**
 * Accepts access tokens (RFC 9068) and tokens without a specific type. Anything else, such as a logout token, is
 * refused.
 */
const TYPES = ['jwt', 'at+jwt'];

/**
 * Returns the first fault that can be detected without a key (if there is one), which ensures that guessing a token
 * does not cause a request to the issuer. The verification library checks these rules too, except for the maximum age
 * and `cnf`.
 */
export function findFault(token: UnverifiedToken, rules: TokenRules, nowSeconds: number): TokenFault | undefined {
  const { header, claims } = token;
  const { clockToleranceSeconds: tolerance, maxAgeSeconds } = rules;
  if (!isAccessTokenType(header['typ'])) return 'type';
  if (header['crit'] !== undefined) return 'critical';
  if (typeof header['alg'] !== 'string' || !rules.algorithms.includes(header['alg'])) return 'algorithm';
  if (typeof header['kid'] !== 'string' || header['kid'] === '') return 'key';
  if (typeof claims['iss'] !== 'string' || !rules.issuers.includes(claims['iss'])) return 'issuer';
  if (!isForAudience(claims['aud'], rules.audience)) return 'audience';
  if (!isTime(claims['exp']) || claims['exp'] <= nowSeconds - tolerance) return 'expired';
  for (const claim of [claims['nbf'], claims['iat']]) {
    if (claim !== undefined && (!isTime(claim) || claim > nowSeconds + tolerance)) return 'early';
  }
  if (maxAgeSeconds !== undefined && !isNewerThan(nowSeconds - tolerance - maxAgeSeconds, claims['iat'])) return 'old';
  // Anyone who has stolen the token could use it if we accepted it without proof of possession (RFC 7800).
  if (Object.hasOwn(claims, 'cnf')) return 'bound';
  return isSubject(claims['sub']) ? undefined : 'subject';
}

function isNewerThan(seconds: number, iat: unknown): boolean {
  return isTime(iat) && iat >= seconds;
}

function isAccessTokenType(typ: unknown): boolean {
  if (typ === undefined) return true;
  return typeof typ === 'string' && TYPES.includes(typ.toLowerCase().replace(/^application\//, ''));
}

function isForAudience(aud: unknown, audience: string): boolean {
  if (typeof aud === 'string') return aud === audience;
  return Array.isArray(aud) && aud.every(each => typeof each === 'string') && aud.includes(audience);
}

/**
 * Returns true if the value is a valid time, in seconds since 1970. Very large JSON numbers are parsed as infinite in
 * JavaScript and must be refused here or we'd accept tokens that never expire.
 */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

/**
 * Returns true if the value is a valid subject. We need to refuse control characters and lone surrogates. With them,
 * two different subjects could have the same encoding.
 */
function isSubject(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.isWellFormed() && !/\p{Cc}/u.test(value);
}
