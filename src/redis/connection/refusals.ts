import { Cluster, type Redis } from 'ioredis';
import { isDenied } from './redis-trouble.ts';

/** How long a denied command is remembered, in milliseconds. Roles repeat most commands within this time. */
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
