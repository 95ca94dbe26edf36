import type { UnverifiedToken } from './bearer-token.ts';

/** Which tokens are taken at all. */
export interface TokenRules {
  /** Each compared byte by byte with `iss`. */
  readonly issuers: readonly string[];
  readonly audience: string;
  /** Signing algorithms (RFC 7518), asymmetric ones. */
  readonly algorithms: readonly string[];
  /** How far the issuer's clock may be off, either way. */
  readonly clockToleranceSeconds: number;
}

/** Why a token is refused, as `error_description` says it. Constant texts: nothing of a token is ever echoed. */
export const FAULTS = {
  malformed: 'The token is not a signed JWT in compact form',
  type: 'The token is of another type than an access token',
  critical: 'The token demands extensions that are not supported',
  algorithm: 'The signing algorithm of the token is not accepted',
  key: 'The token is not signed by a key of its issuer',
  issuer: 'The issuer of the token is not accepted',
  audience: 'The token is for another audience',
  expired: 'The token has expired or says not when it expires',
  early: 'The token is not valid yet',
  subject: 'The token has no usable subject',
  signature: 'The signature of the token is not valid',
} as const;

export type TokenFault = keyof typeof FAULTS;

/** Access tokens (RFC 9068) and those of issuers that know no type for them; not logout tokens, proofs and the like. */
const TYPES = ['jwt', 'at+jwt'];

/**
 * The first fault of a token that shows without any key; undefined when it is worth verifying. Deciding it here keeps
 * guesses from reaching the issuer, and makes two independent checks of what the verifying library checks again.
 */
export function findFault(token: UnverifiedToken, rules: TokenRules, nowSeconds: number): TokenFault | undefined {
  const { header, claims } = token;
  const { clockToleranceSeconds: tolerance } = rules;
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
  return isSubject(claims['sub']) ? undefined : 'subject';
}

function isAccessTokenType(typ: unknown): boolean {
  if (typ === undefined) return true;
  return typeof typ === 'string' && TYPES.includes(typ.toLowerCase().replace(/^application\//, ''));
}

function isForAudience(aud: unknown, audience: string): boolean {
  if (typeof aud === 'string') return aud === audience;
  return Array.isArray(aud) && aud.every(each => typeof each === 'string') && aud.includes(audience);
}

/** Seconds since 1970. JSON has numbers that JavaScript reads as infinite: a token must not last for ever. */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

/** No control characters and no half of a surrogate pair: two subjects must not become one when they are encoded. */
function isSubject(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.isWellFormed() && !/\p{Cc}/u.test(value);
}
