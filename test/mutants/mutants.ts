import { AUTHENTICATION_MUTANTS } from './authentication-mutants.ts';
import { CACHE_MUTANTS } from './cache-mutants.ts';
import { CONNECTION_MUTANTS } from './connection-mutants.ts';
import { CONTROL_MUTANTS } from './control-mutants.ts';
import { DELIVERY_MUTANTS } from './delivery-mutants.ts';
import { KIND_MUTANTS } from './kind-mutants.ts';
import { LIMITS_MUTANTS } from './limits-mutants.ts';
import type { Mutant } from './mutant.ts';
import { CLAIM_MUTANTS } from './part/claim-mutants.ts';
import { INGEST_MUTANTS } from './part/ingest-mutants.ts';
import { LEDGER_MUTANTS } from './part/ledger-mutants.ts';
import { SANDBOX_MUTANTS } from './part/sandbox-mutants.ts';
import { PAUSE_MUTANTS } from './pause-mutants.ts';
import { PROCESS_MUTANTS } from './process-mutants.ts';
import { REST_MUTANTS } from './rest-mutants.ts';
import { RIVAL_MUTANTS } from './rival-mutants.ts';
import { ROUTING_MUTANTS } from './routing-mutants.ts';
import { SECURITY_MUTANTS } from './security-mutants.ts';
import { SHARE_MUTANTS } from './share-mutants.ts';

/** All mutants, by subject. */
export const MUTANTS: readonly Mutant[] = [
  ...INGEST_MUTANTS,
  ...CLAIM_MUTANTS,
  ...LEDGER_MUTANTS,
  ...SANDBOX_MUTANTS,
  ...AUTHENTICATION_MUTANTS,
  ...SECURITY_MUTANTS,
  ...LIMITS_MUTANTS,
  ...SHARE_MUTANTS,
  ...CONNECTION_MUTANTS,
  ...PAUSE_MUTANTS,
  ...CACHE_MUTANTS,
  ...CONTROL_MUTANTS,
  ...DELIVERY_MUTANTS,
  ...REST_MUTANTS,
  ...KIND_MUTANTS,
  ...PROCESS_MUTANTS,
  ...ROUTING_MUTANTS,
  ...RIVAL_MUTANTS,
];
