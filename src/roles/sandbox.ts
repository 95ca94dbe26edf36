import type { Layout } from '../config/layout.ts';
import { VERSION } from '../config/version.ts';
import { deriveSealKeys } from '../core/delivery/seal.ts';
import type { DueLoop } from '../dataplane/due-loop.ts';
import { createSandboxRunner } from '../dataplane/sandbox/sandbox-runner.ts';
import { createPartSource } from '../part/fate/sandbox-source.ts';
import type { RedisClient } from '../redis/client.ts';
import { createHintIndex } from '../redis/hints.ts';
import { holdHints } from '../redis/root-key-watch.ts';
import { createQueueSource, type SandboxSource } from '../redis/sandbox-source.ts';
import type { Parts } from './parts.ts';

/** Returns what sandbox runs read of production. */
export function openSandboxSource(layout: Layout, redis: RedisClient): SandboxSource {
  return layout === 'parts' ? createPartSource(redis) : createQueueSource(redis);
}

/**
 * Creates the loop of a dispatcher that drives sandbox runs.
 *
 * @param isHeld whether the root key isn't the one that endpoints were encrypted with. Runs stay due as long as it is not.
 */
export function openSandboxRunner(parts: Parts, isHeld: () => boolean): DueLoop {
  const { config, log, redis, nowMs, alarm } = parts;
  const rootKey = config.rootKey as Uint8Array;
  const sandbox = createSandboxRunner({
    redis,
    source: openSandboxSource(config.layout, redis),
    hints: holdHints(createHintIndex(redis, 's'), isHeld),
    keys: { rootKey, sealKeys: deriveSealKeys(rootKey) },
    version: VERSION,
    alarm,
    nowMs,
    log,
  });
  redis.onReconnect(sandbox.lookEverywhere);
  return sandbox;
}
