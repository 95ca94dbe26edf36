import type { ProblemCode } from '../../core/problems/problems.ts';
import { Refusal } from '../../http/refusal.ts';
import { FAULTS, type TokenFault } from './token-fault.ts';

const CHALLENGE = 'Bearer realm="sluice"';

/** No credentials: the challenge alone, without an error (RFC 6750, section 3.1). */
export function refuseMissing(): Refusal {
  return new Refusal('missing_token', { headers: { 'www-authenticate': CHALLENGE } });
}

/** A token that is not taken, for a reason that holds nothing of the token. */
export function refuseToken(fault: TokenFault): Refusal {
  return challenge('invalid_token', 'invalid_token', FAULTS[fault]);
}

/** A request whose credentials are not where they belong, or are there twice. */
export function refuseMisplaced(description: string): Refusal {
  return challenge('misplaced_token', 'invalid_request', description);
}

/** A request that the verifying library cannot work with; it looks at Host and path too. */
export function refuseRequest(): Refusal {
  return challenge('malformed_request', 'invalid_request', 'The Host header or the path is not well-formed');
}

/** Whether the token is good cannot be told now. Why was logged when the issuer was asked. */
export function refuseUndecided(): Refusal {
  return new Refusal('issuer_unavailable', { headers: { 'retry-after': '5' } });
}

function challenge(code: ProblemCode, error: string, description: string): Refusal {
  const value = `${CHALLENGE}, error="${error}", error_description="${description}"`;
  return new Refusal(code, { detail: `${description}.`, headers: { 'www-authenticate': value } });
}
