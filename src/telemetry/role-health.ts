import type { Logger } from './log.ts';

/** Reasons why a role cannot do its work, as in the label `reason` of `sluice_role_impaired`, with their meaning. */
export const IMPAIRMENTS = {
  RedisUnavailable: 'Redis does not respond.',
  RedisUnsuitable: 'Redis has settings that can cause data loss or block it.',
  ForeignRedis: 'Redis contains the data of another Kubernetes cluster.',
  KubernetesUnavailable: 'The API server does not respond.',
  Forbidden: 'Kubernetes has not granted all permissions that the role requires.',
  CachesNotSynced: 'The caches of custom resources are empty or out of date.',
  LeaseUnavailable: 'The role cannot read or write the Lease.',
  TermNotStarted: 'This replica holds the Lease but cannot start its work.',
  OutdatedCRDs: 'The CustomResourceDefinitions are older than this version of Sluice.',
  RootKeyMismatch: 'The root key is different from the root key of the leading controller.',
} as const;

export type ImpairmentReason = keyof typeof IMPAIRMENTS;

/** Something that keeps a role from doing its work. */
export interface Impairment {
  readonly reason: ImpairmentReason;
  /**
   * `settings`: the settings or rights of this replica are wrong; it is not ready while this lasts.
   * `dependency`: a shared dependency is unavailable; a replica that has worked before stays ready.
   */
  readonly cause: 'settings' | 'dependency';
  /** What is wrong, with the environment variable or the object to change. */
  readonly message: string;
}

/** Returns what keeps a role from working now; empty while it works. Must be cheap: called every second. */
export type ImpairmentCheck = () => readonly Impairment[];

export interface HealthState {
  readonly ready: boolean;
  readonly impairments: readonly Impairment[];
}

interface RoleHealth {
  readonly state: () => HealthState;
  readonly stop: () => void;
}

/** Calls `run` every `everyMs`, first after `everyMs`. Returns a function that stops this. */
type Repeat = (run: () => void, everyMs: number) => () => void;

const CHECK_EVERY_MS = 1_000;
/** What ends sooner is an ordinary start, or a blip. */
const LOG_AFTER_MS = 5_000;
const LOG_EVERY_MS = 60_000;

/**
 * Watches one role: logs each impairment that lasts 5 s, once a minute from then on, and when it has ended. The role is
 * ready once it has worked, unless its own settings keep it from working.
 */
export function watchRoleHealth(options: {
  readonly role: string;
  readonly check: ImpairmentCheck;
  readonly log: Logger;
  readonly nowMs?: () => number;
  readonly repeat?: Repeat;
}): RoleHealth {
  const { role, check, log, nowMs = () => performance.now(), repeat = every } = options;
  const lasting = new Map<ImpairmentReason, { readonly sinceMs: number; loggedMs?: number }>();
  let worked = false;

  function state(): HealthState {
    const impairments = check();
    if (impairments.length === 0) worked = true;
    return { ready: worked && impairments.every(({ cause }) => cause === 'dependency'), impairments };
  }

  function report(): void {
    const { impairments } = state();
    const now = nowMs();
    for (const { reason, message } of impairments) {
      const entry = lasting.get(reason) ?? { sinceMs: now };
      lasting.set(reason, entry);
      const dueMs = entry.loggedMs === undefined ? entry.sinceMs + LOG_AFTER_MS : entry.loggedMs + LOG_EVERY_MS;
      if (now < dueMs) continue;
      entry.loggedMs = now;
      log.error({ role, reason, detail: message }, 'role cannot work');
    }
    for (const [reason, { loggedMs }] of lasting) {
      if (impairments.some(each => each.reason === reason)) continue;
      lasting.delete(reason);
      if (loggedMs !== undefined) log.info({ role, reason }, 'role can work again');
    }
  }

  return { state, stop: repeat(report, CHECK_EVERY_MS) };
}

function every(run: () => void, everyMs: number): () => void {
  const timer = setInterval(run, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
