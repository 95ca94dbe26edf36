import type { ProblemCode } from '../../core/problems/problems.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Scope } from './scopes.ts';
import { FAULTS, type TokenFault } from './token-fault.ts';

const CHALLENGE = 'Bearer realm="sluice"';

/** Returns the challenge for missing credentials. This must not contain an error (RFC 6750, section 3.1). */
export function refuseMissing(): Refusal {
  return new Refusal('missing_token', { headers: { 'www-authenticate': CHALLENGE } });
}

/** Returns the refusal for a token. No part of the token is included in the reason. */
export function refuseToken(fault: TokenFault): Refusal {
  return challenge('invalid_token', 'invalid_token', FAULTS[fault]);
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
