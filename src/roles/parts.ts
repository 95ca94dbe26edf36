import type { Config } from '../config/config.ts';
import type { KubeMetrics } from '../kube/kube-metrics.ts';
import type { RedisClient } from '../redis/client.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Registry } from '../telemetry/metrics.ts';
import type { Impairment, ImpairmentCheck } from '../telemetry/role-health.ts';
import type { Tracing } from '../telemetry/tracing.ts';

/** A role that runs: how it is stopped, and what keeps it from working. */
export interface Running {
  /** It goes on, and tells everybody to go elsewhere next time. */
  readonly drain?: () => void;
  readonly stop: () => Promise<void>;
  readonly impairments: ImpairmentCheck;
}

/** What the roles of one process share. */
export interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing | undefined;
  /** Rejects commands until Redis answers; only the controller is started before. */
  readonly redis: RedisClient;
  readonly redisImpairments: ImpairmentCheck;
  /** Of the roles that talk to Kubernetes, together. */
  readonly kubeMetrics: () => KubeMetrics;
  readonly nowMs: () => number;
  readonly alarm: (slot: string) => void;
}

/** Returns what a role says whose caches are not filled. */
export function notSynced(kinds: readonly string[]): readonly Impairment[] {
  if (kinds.length === 0) return [];
  const message = `The caches of ${kinds.join(', ')} are empty or out of date: the API server (KUBECONFIG) does not answer, or refuses to list them.`;
  return [{ reason: 'CachesNotSynced', cause: 'dependency', message }];
}
