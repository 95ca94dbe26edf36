import type { ProblemCode } from '../../core/problems/problems.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Scope } from './scopes.ts';
import { FAULTS, type TokenFault } from './token-fault.ts';

const CHALLENGE = 'Bearer realm="sluice"';

/** Returns the challenge for missing credentials. Must not contain an error (RFC 6750, section 3.1). */
export function refuseMissing(): Refusal {
  return new Refusal('missing_token', { headers: { 'www-authenticate': CHALLENGE } });
}

/** The characters allowed in an `error_description` (RFC 6750, section 3). */
const DESCRIPTION = /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * Returns the refusal for a token. No part of the token is included in the reason.
 *
 * @param audience expected in tokens
 */
export function refuseToken(fault: TokenFault, audience: string): Refusal {
  const expected = fault === 'audience' && DESCRIPTION.test(audience) ? ` than ${audience}` : '';
  return challenge('invalid_token', 'invalid_token', `${FAULTS[fault]}${expected}`);
}

/** Returns the refusal for credentials which are in the wrong place or were sent several times. */
export function refuseMisplaced(description: string): Refusal {
  return challenge('misplaced_token', 'invalid_request', description);
}

/**
 * Returns the refusal for a request that can't be processed by the library for verifying tokens. This library also
 * reads the Host header and the path.
 */
export function refuseRequest(): Refusal {
  return challenge('malformed_request', 'invalid_request', 'The Host header or the path is not valid');
}

/**
 * Returns the refusal if the token can't be verified at the moment. The cause was already logged when we tried to read
 * the keys.
 */
export function refuseUndecided(): Refusal {
  return new Refusal('issuer_unavailable', { headers: { 'retry-after': '5' } });
}

/** Returns the refusal for a token without the scope required by the call (RFC 6750, section 3.1). */
export function refuseScope(scope: Scope): Refusal {
  const description = `The token does not have the scope ${scope}, which this call requires`;
  return challenge('insufficient_scope', 'insufficient_scope', description, `, scope="${scope}"`);
}

function challenge(code: ProblemCode, error: string, description: string, more = ''): Refusal {
  const value = `${CHALLENGE}, error="${error}", error_description="${description}"${more}`;
  return new Refusal(code, { detail: `${description}.`, headers: { 'www-authenticate': value } });
}
