import { Cluster, type Redis } from 'ioredis';
import { isDenied } from './redis-trouble.ts';

/** The time for which a denied command is remembered, in milliseconds. Roles repeat most commands within this time. */
const DENIED_FOR_MS = 60_000;

/** Remembers the last command that was denied. */
export function rememberDenials() {
  let last: Error | undefined;
  let sinceMs = 0;
  return {
    note: (error: Error) => {
      if (!isDenied(error)) return;
      last = error;
      sinceMs = performance.now();
    },
    last: () => (performance.now() - sinceMs < DENIED_FOR_MS ? last : undefined),
  };
}

/** The errors of a server that responds, but does not accept writes. */
const REJECTS_WRITES = /^(?:READONLY|NOREPLICAS|MISCONF)\b/;

/** The time for which a master without further writes is remembered, in milliseconds. */
const REJECTED_FOR_MS = 60_000;

/** Remembers the masters that have rejected a write, until they accept one. */
export function rememberRejections() {
  const byMaster = new Map<string, { readonly error: Error; readonly untilMs: number }>();
  return {
    note: (master: string, error: Error) => {
      if (REJECTS_WRITES.test(error.message)) {
        byMaster.set(master, { error, untilMs: performance.now() + REJECTED_FOR_MS });
      }
    },
    /** Returns true if `accepted` must be called after a write. */
    isRejecting: () => byMaster.size > 0,
    accepted: (master: string) => void byMaster.delete(master),
    last: () => [...byMaster.values()].find(({ untilMs }) => performance.now() < untilMs)?.error,
  };
}

/**
 * Calls `onFailure` if a node rejects ASKING, which ioredis sends before it follows a slot that is being moved. ioredis
 * ignores the result, so a failure would end the process. Call this before connecting.
 */
export function watchAsking(redis: Redis | Cluster, onFailure: (error: Error) => void): void {
  if (!(redis instanceof Cluster)) return;
  redis.on('+node', (node: Redis) => {
    const asking = node.asking.bind(node);
    node.asking = () =>
      asking().catch((error: Error) => {
        onFailure(error);
        return 'OK' as const;
      });
  });
}
