import { VERSION } from '../config/version.ts';
import type { KeyRing } from '../core/delivery/key-ring.ts';
import type { DueLoop } from '../dataplane/due-loop.ts';
import { createSandboxRunner } from '../dataplane/sandbox/sandbox-runner.ts';
import { createHintIndex } from '../hints/hints.ts';
import { holdHints } from '../record/root-key-watch.ts';
import type { Parts } from './parts.ts';

/**
 * Creates the loop that a dispatcher uses to process sandbox runs.
 *
 * @param isHeld whether the root key that endpoints are encrypted with is missing. Runs stay due as long as it is.
 */
export function openSandboxRunner(parts: Parts, keys: KeyRing, isHeld: () => boolean): DueLoop {
  const { log, redis, nowMs, alarm } = parts;
  const sandbox = createSandboxRunner({
    redis,
    hints: holdHints(createHintIndex(redis, 's'), isHeld),
    keys,
    version: VERSION,
    alarm,
    nowMs,
    log,
  });
  redis.onReconnect(sandbox.lookEverywhere);
  return sandbox;
}
