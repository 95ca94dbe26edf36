import type { Logger } from '../telemetry/log.ts';
import type { Backoff } from '../time/backoff.ts';
import type { Clock } from '../time/clock.ts';
import type { KubeClient } from './client.ts';
import { isKubeError } from './kube-error.ts';
import type { AnyObject } from './object.ts';
import { createReflector } from './reflector.ts';
import type { Resource } from './resource.ts';

/**
 * Whether the objects of a namespace can be read: `closed` if nobody asked for them, `pending` until the first list, and
 * `forbidden` if the last answer of the API server was 403. A forbidden namespace keeps what was read before.
 */
export type NamespaceAccess = 'closed' | 'pending' | 'readable' | 'forbidden';

/** A namespace may stay forbidden for a long time, and each attempt is logged. */
const BACKOFF: Backoff = { firstMs: 200, mostMs: 60_000 };

/** Values of an object, one for each view. */
type Values = readonly unknown[];

/** NamespaceWatch caches the objects of one namespace, and knows whether the API server allows this. */
export interface NamespaceWatch {
  readonly access: () => Exclude<NamespaceAccess, 'closed'>;
  /** Whether the namespace has ever been listed. */
  readonly wasRead: () => boolean;
  /** Resolves once the namespace is listed, forbidden, or closed. */
  readonly settled: Promise<void>;
  /** Lists the namespace again. Resolves as well if this is forbidden, or the namespace is closed. */
  readonly relist: () => Promise<void>;
  /** Undefined while disconnected, or before the first message. */
  readonly lastHeardMs: () => number | undefined;
  /** Ends the watch, and keeps the objects. */
  readonly stop: () => Promise<void>;
  /** Ends the watch, and reports all objects as deleted. */
  readonly close: () => void;
}

/** Starts to watch a namespace. Objects without any value are left out. */
export function createNamespaceWatch(options: {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  readonly namespace: string;
  readonly fieldSelector?: string;
  readonly project: (object: AnyObject) => Values;
  readonly onChange: (key: string, old: Values | undefined, current: Values | undefined) => void;
  readonly onAccess: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}): NamespaceWatch {
  const { onChange, onAccess, ...connection } = options;
  const end = new AbortController();
  const settled = Promise.withResolvers<void>();
  /** Callers waiting for a list. */
  const waiting = new Set<() => void>();
  let forbidden = false;

  function release(): void {
    settled.resolve();
    for (const resolve of waiting) resolve();
    waiting.clear();
  }

  function setForbidden(is: boolean): void {
    if (end.signal.aborted) return;
    if (is) release();
    if (forbidden === is) return;
    forbidden = is;
    onAccess();
  }

  const reflector = createReflector<AnyObject, Values>({
    ...connection,
    client: noteAccess(options.client, setForbidden),
    project: object => {
      const values = options.project(object);
      return values.some(value => value !== undefined) ? values : undefined;
    },
    onChange: (_change, key, old, current) => {
      if (!end.signal.aborted) onChange(key, old, current);
    },
    backoff: BACKOFF,
  });
  void reflector.synced.then(() => {
    settled.resolve();
    if (!end.signal.aborted) onAccess();
  });
  const ended = reflector.run(end.signal);

  return {
    access: () => (forbidden ? 'forbidden' : reflector.hasSynced() ? 'readable' : 'pending'),
    wasRead: reflector.hasSynced,
    settled: settled.promise,
    async relist() {
      const released = Promise.withResolvers<void>();
      waiting.add(released.resolve);
      await Promise.race([released.promise, reflector.relist().catch(() => {})]);
      waiting.delete(released.resolve);
    },
    lastHeardMs: () => (forbidden ? undefined : reflector.lastHeardMs()),
    stop: () => {
      end.abort();
      return ended;
    },
    close() {
      end.abort();
      release();
      for (const key of reflector.store.keys()) onChange(key, reflector.store.get(key), undefined);
    },
  };
}

/** Returns a client that reports whether the API server denies its requests. */
function noteAccess(
  client: Pick<KubeClient, 'list' | 'watch'>,
  note: (forbidden: boolean) => void,
): Pick<KubeClient, 'list' | 'watch'> {
  const noted = (error: unknown) => {
    if (isKubeError(error, 403)) note(true);
    return error;
  };
  return {
    list: async (...args) => {
      try {
        const answer = await client.list(...args);
        note(false);
        return answer;
      } catch (error) {
        throw noted(error);
      }
    },
    async *watch(...args) {
      try {
        yield* client.watch(...args);
      } catch (error) {
        throw noted(error);
      }
    },
  };
}
