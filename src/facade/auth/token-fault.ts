import type { UnverifiedToken } from './bearer-token.ts';

/** Which tokens are accepted. */
export interface TokenRules {
  /** Accepted issuers, each compared byte by byte with `iss`. */
  readonly issuers: readonly string[];
  readonly audience: string;
  /** Accepted asymmetric signing algorithms (RFC 7518). */
  readonly algorithms: readonly string[];
  /** Maximum clock difference to the issuer, in both directions. */
  readonly clockToleranceSeconds: number;
}

/** Texts for `error_description` by fault. They are constants: nothing of a token is echoed. */
export const FAULTS = {
  malformed: 'The token is not a signed JWT in compact form',
  type: 'The token is not an access token',
  critical: 'The token requires unsupported extensions',
  algorithm: 'The signing algorithm of the token is not supported',
  key: 'The token is not signed with a key of its issuer',
  issuer: 'The issuer of the token is not accepted',
  audience: 'The token has a different audience',
  expired: 'The token has expired or does not have an expiry',
  early: 'The token is not valid yet',
  subject: 'The token does not contain a valid subject',
  signature: 'The signature of the token is not valid',
} as const;

export type TokenFault = keyof typeof FAULTS;

/** Accepts access tokens (RFC 9068) and tokens without a specific type; refuses logout tokens, proofs and others. */
const TYPES = ['jwt', 'at+jwt'];

/**
 * Returns the first fault of a token that is visible without a key; undefined if the token is worth verifying. Guesses
 * so never reach the issuer, and each rule is checked twice: here and in the verifying library.
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

/** Seconds since 1970. JavaScript parses some JSON numbers as infinite: a token must not be valid forever. */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

/** Refuses control characters and lone surrogates: two subjects must not become one when encoded. */
function isSubject(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.isWellFormed() && !/\p{Cc}/u.test(value);
}
