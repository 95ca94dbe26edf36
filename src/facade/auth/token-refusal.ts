import { FAULTS, type TokenFault } from './token-fault.ts';

/**
 * The reason why a call was rejected because of its token. The token can be missing, misplaced, or faulty, or it might
 * currently not be possible to verify it.
 */
export type TokenRefusal = TokenFault | 'missing' | 'misplaced' | 'request' | 'undecided';

export const TOKEN_REFUSALS = [
  'missing',
  'misplaced',
  'request',
  'undecided',
  ...(Object.keys(FAULTS) as TokenFault[]),
] as const satisfies readonly TokenRefusal[];
