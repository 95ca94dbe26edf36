import type { Config } from '../config/config.ts';
import type { KubeMetrics } from '../kube/kube-metrics.ts';
import type { RedisClient } from '../redis/client.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Registry } from '../telemetry/metrics.ts';
import type { Impairment, ImpairmentCheck } from '../telemetry/role-health.ts';
import type { Tracing } from '../telemetry/tracing.ts';

/** A running role. */
export interface Running {
  /** Keeps serving, but closes each connection after its answer. */
  readonly drain?: () => void;
  readonly stop: () => Promise<void>;
  readonly impairments: ImpairmentCheck;
}

/** Dependencies that the roles of one process share. */
export interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing | undefined;
  /** Rejects commands until Redis answers; only the controller starts before that. */
  readonly redis: RedisClient;
  readonly redisImpairments: ImpairmentCheck;
  /** Returns the metrics that all roles with a Kubernetes client share. */
  readonly kubeMetrics: () => KubeMetrics;
  readonly nowMs: () => number;
  readonly alarm: (slot: string) => void;
}

/** Returns the impairment of a role whose caches of `kinds` are not synced. */
export function notSynced(kinds: readonly string[]): readonly Impairment[] {
  if (kinds.length === 0) return [];
  const message = `The caches of ${kinds.join(', ')} are empty or out of date: the API server does not answer or refuses to list them. Check KUBECONFIG and the rights of the service account.`;
  return [{ reason: 'CachesNotSynced', cause: 'dependency', message }];
}
