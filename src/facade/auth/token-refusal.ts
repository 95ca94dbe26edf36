import { FAULTS, type TokenFault } from './token-fault.ts';

/** Why a call got no further than its token: none, not where it belongs, a fault of it, or nobody can tell now. */
export type TokenRefusal = TokenFault | 'missing' | 'misplaced' | 'request' | 'undecided';

export const TOKEN_REFUSALS = [
  'missing',
  'misplaced',
  'request',
  'undecided',
  ...(Object.keys(FAULTS) as TokenFault[]),
] as const satisfies readonly TokenRefusal[];
