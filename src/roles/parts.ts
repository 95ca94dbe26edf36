import type { Config } from '../config/config.ts';
import type { KubeMetrics } from '../kube/kube-metrics.ts';
import type { ReadSurvey } from '../part/survey/work-metrics.ts';
import type { RedisClient } from '../redis/client.ts';
import type { KeysVersion } from '../redis/keys-version.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Registry } from '../telemetry/metrics.ts';
import type { Impairment, ImpairmentCheck } from '../telemetry/role-health.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { CertificateMetrics } from '../tls/certificate-metrics.ts';

/** A running role. */
export interface Running {
  /** Requests are still processed, but each connection is closed after its response. */
  readonly drain?: () => void;
  readonly stop: () => Promise<void>;
  readonly impairments: ImpairmentCheck;
}

/** The dependencies shared by all roles in a process. */
export interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing | undefined;
  /** Commands are rejected until Redis has responded. Only the controller is started before that. */
  readonly redis: RedisClient;
  readonly redisImpairments: ImpairmentCheck;
  readonly keysVersion: () => KeysVersion | undefined;
  /** Returns the metrics for roles with a Kubernetes client. */
  readonly kubeMetrics: () => KubeMetrics;
  readonly certificates: CertificateMetrics;
  readonly nowMs: () => number;
  /** Pending work of parts. Only read on demand. */
  readonly survey: ReadSurvey;
  readonly alarm: (slot: string) => void;
}

/** Returns the impairment of a role whose caches for `kinds` have not synced, or have not been updated for too long. */
export function notSynced(kinds: readonly string[], cause: Impairment['cause'] = 'dependency'): readonly Impairment[] {
  if (kinds.length === 0) return [];
  const message = `The caches of ${[...new Set(kinds)].join(', ')} are empty or out of date because the API server does not respond or rejects the credentials or permissions of this role. Check KUBECONFIG, and the token and permissions of the service account.`;
  return [{ reason: 'CachesNotSynced', cause, message }];
}
