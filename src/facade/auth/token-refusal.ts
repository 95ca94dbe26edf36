import { FAULTS, type TokenFault } from './token-fault.ts';

/** Why a call was refused for its token: missing, misplaced, faulty, or undecided. */
export type TokenRefusal = TokenFault | 'missing' | 'misplaced' | 'request' | 'undecided';

export const TOKEN_REFUSALS = [
  'missing',
  'misplaced',
  'request',
  'undecided',
  ...(Object.keys(FAULTS) as TokenFault[]),
] as const satisfies readonly TokenRefusal[];
