import { every, type Repeat } from '../time/clock.ts';
import { type Logger, logOfRole } from './log.ts';

/** The reason why a role is unable to work, as in the `reason` label of `sluice_role_impaired`, with descriptions. */
export const IMPAIRMENTS = {
  RedisUnavailable: 'Redis does not respond, or does not accept writes.',
  RedisAccessDenied:
    'Redis or Sentinel denies access to the configured user and password, or the user lacks a required permission.',
  RedisNotReplicated: 'Writes to a Redis master are not confirmed by enough replicas (`SLUICE_REDIS_WAIT_REPLICAS`).',
  RedisUnsuitable: 'The Redis settings can cause data loss, or can make Redis block.',
  UnsupportedRedisFormat:
    'Redis contains data in the format of another Sluice version, which this version does not support.',
  ForeignRedis:
    'Redis contains the data of another Kubernetes cluster, or of another installation in the same cluster, or the leading controller uses another Redis.',
  KubernetesUnavailable: 'The API server does not respond or rejects the credentials of the role.',
  Forbidden: 'The role lacks a required Kubernetes permission.',
  CachesNotSynced: 'The caches of custom resources are empty or out of date.',
  LeaseUnavailable:
    'The role cannot read or write the Lease, or list the Leases of other installations, or the holder of the Lease does not renew it.',
  InstanceTaken:
    'Another namespace has an installation with the same name (`SLUICE_INSTANCE`), and its controller leads, was killed, or has used another Redis.',
  TermNotStarted: 'This replica holds the Lease but cannot start its work.',
  OutdatedCRDs: 'The CustomResourceDefinitions are older than this version of Sluice.',
  IssuerUnavailable:
    'The facade cannot read the keys of an identity provider (`SLUICE_OIDC_ISSUERS`) and cannot verify its access tokens.',
  AuditUnavailable: 'Audit lines cannot be written to their destination, or lines were lost in the last 5 minutes.',
  RootKeyMismatch: 'This replica does not have the root key used by the leading controller for signing and encryption.',
} as const;

export type ImpairmentReason = keyof typeof IMPAIRMENTS;

/** Something that keeps a role from doing its work. */
export interface Impairment {
  readonly reason: ImpairmentReason;
  /**
   * `settings` means that the settings or permissions of this replica are wrong, so it is not ready until they have
   * been corrected. `dependency` means that a shared dependency is unavailable. In this case, a replica that has worked
   * before remains ready. `partial` means that the role is able to do a part of its work, so this is only reported.
   */
  readonly cause: 'settings' | 'dependency' | 'partial';
  /** A description of the problem, including the environment variable or object to change. */
  readonly message: string;
}

/**
 * Returns the problems that currently prevent a role from working. Empty while it is working. Called every second, so
 * this must be cheap.
 */
export type ImpairmentCheck = () => readonly Impairment[];

export interface HealthState {
  readonly ready: boolean;
  readonly impairments: readonly Impairment[];
}

interface RoleHealth {
  readonly state: () => HealthState;
  readonly stop: () => void;
}

const CHECK_EVERY_MS = 1_000;
/** Anything shorter is either an ordinary start or a blip. */
const LOG_AFTER_MS = 5_000;
const LOG_EVERY_MS = 60_000;

/**
 * Watches a role, logging each impairment that lasts for 5 s, again once a minute, and when it is over. A role which
 * has worked once remains ready unless its own settings prevent it from working.
 */
export function watchRoleHealth(options: {
  readonly role: string;
  readonly check: ImpairmentCheck;
  readonly log: Logger;
  readonly nowMs?: () => number;
  readonly repeat?: Repeat;
}): RoleHealth {
  const { role, check, nowMs = () => performance.now(), repeat = every } = options;
  const log = logOfRole(options.log, role);
  const lasting = new Map<ImpairmentReason, { readonly sinceMs: number; loggedMs?: number }>();
  let worked = false;

  function state(): HealthState {
    const impairments = check();
    if (impairments.every(({ cause }) => cause === 'partial')) worked = true;
    return { ready: worked && impairments.every(({ cause }) => cause !== 'settings'), impairments };
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
      log.error({ reason, detail: message }, 'role cannot work');
    }
    for (const [reason, { loggedMs }] of lasting) {
      if (impairments.some(each => each.reason === reason)) continue;
      lasting.delete(reason);
      if (loggedMs !== undefined) log.info({ reason }, 'role is able to work again');
    }
  }

  return { state, stop: repeat(report, CHECK_EVERY_MS) };
}
