import type { CONDITION_MEANING } from '../../../src/api/condition-reasons.ts';
import type { KindName } from '../../../src/api/kinds/kinds.ts';

type Meanings = typeof CONDITION_MEANING;

/** The terms used by Argo CD for the health of an object. */
export type Health = 'Healthy' | 'Progressing' | 'Suspended' | 'Degraded';

/** Conditions by type, as `<status> <reason>`. */
export type Conditions<K extends KindName> = {
  readonly [C in keyof Meanings[K]]?: `${'True' | 'False' | 'Unknown'} ${keyof Meanings[K][C] & string}`;
};

/** A status written by the controller, and the resulting health. */
export type Scenario<K extends KindName = KindName> = {
  /** In kebab case, and different from the other scenarios of the kind. */
  readonly name: string;
  readonly health: Health;
  /** The conditions quoted in the message, in the order of the status. Defaults to Ready. */
  readonly by?: readonly (keyof Meanings[K] & string)[];
  /** The complete message, if it doesn't quote a condition. */
  readonly message?: string;
  /** The value of the annotation that pauses a workspace. */
  readonly paused?: string;
  readonly conditions: Conditions<K>;
};

/** Scenarios for all kinds: waiting, failing, paused, and rejected. */
export const COMMON = [
  {
    name: 'waiting-for-workspace',
    health: 'Progressing',
    conditions: { Ready: 'Unknown WaitingForWorkspace', Reconciling: 'True Progressing' },
  },
  {
    name: 'workspace-missing',
    health: 'Degraded',
    by: ['Stalled'],
    conditions: { Ready: 'False WaitingForWorkspace', Stalled: 'True WaitingForWorkspace' },
  },
  { name: 'workspace-paused', health: 'Suspended', conditions: { Ready: 'Unknown WorkspacePaused' } },
  {
    name: 'redis-unavailable',
    health: 'Progressing',
    conditions: { Ready: 'False RedisUnavailable', Reconciling: 'True Retrying' },
  },
  {
    name: 'secrets-forbidden',
    health: 'Progressing',
    conditions: { Ready: 'False SecretsForbidden', Reconciling: 'True Retrying' },
  },
  {
    name: 'reconcile-failed',
    health: 'Progressing',
    conditions: { Ready: 'False ReconcileFailed', Reconciling: 'True Retrying' },
  },
  {
    name: 'draining',
    health: 'Progressing',
    conditions: { Ready: 'False RedisUnavailable', Reconciling: 'True Draining' },
  },
] as const satisfies readonly Scenario<'Account'>[];
