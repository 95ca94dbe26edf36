import { FAULTS, type TokenFault } from './token-fault.ts';

/**
 * Reason why a call was refused because of its token: missing, misplaced, faulty, or impossible to verify at the
 * moment.
 */
export type TokenRefusal = TokenFault | 'missing' | 'misplaced' | 'request' | 'undecided';

export const TOKEN_REFUSALS = [
  'missing',
  'misplaced',
  'request',
  'undecided',
  ...(Object.keys(FAULTS) as TokenFault[]),
] as const satisfies readonly TokenRefusal[];
