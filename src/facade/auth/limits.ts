import type { DocumentLimits } from './issuer-documents.ts';
import type { KeyLimits } from './issuer-keys.ts';

/** Authentication limits. All sizes are in bytes and all times are in milliseconds. */
export interface AuthenticationLimits extends DocumentLimits, KeyLimits {}

export const AUTHENTICATION_LIMITS: AuthenticationLimits = {
  timeoutMs: 5_000,
  maxBytes: 1024 * 1024,
  refreshMs: 10 * 60_000,
  trustMs: 60 * 60_000,
  cooldownMs: 5_000,
  retryMs: 1_000,
};
