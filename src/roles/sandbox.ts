import { VERSION } from '../config/version.ts';
import { deriveSealKeys } from '../core/delivery/seal.ts';
import type { DueLoop } from '../dataplane/due-loop.ts';
import { createSandboxRunner } from '../dataplane/sandbox/sandbox-runner.ts';
import { createHintIndex } from '../hints/hints.ts';
import { holdHints } from '../record/root-key-watch.ts';
import type { Parts } from './parts.ts';

/**
 * Creates the loop that a dispatcher uses to process sandbox runs.
 *
 * @param isHeld whether the root key isn't the one that endpoints were encrypted with. Runs stay due as long as it is not.
 */
export function openSandboxRunner(parts: Parts, isHeld: () => boolean): DueLoop {
  const { config, log, redis, nowMs, alarm } = parts;
  const rootKey = config.rootKey as Uint8Array;
  const sandbox = createSandboxRunner({
    redis,
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
