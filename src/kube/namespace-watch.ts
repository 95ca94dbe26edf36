import type { Logger } from '../telemetry/log.ts';
import type { Backoff } from '../time/backoff.ts';
import type { Clock } from '../time/clock.ts';
import type { KubeClient } from './client.ts';
import { isKubeError, KubeError, NO_ANSWER } from './kube-error.ts';
import type { AnyObject } from './object.ts';
import { createReflector } from './reflector.ts';
import { collectionPath, type Resource } from './resource.ts';

/**
 * Whether it is possible to read the objects in a namespace: `closed` if the objects are not required, `pending` until
 * they have been listed, and `forbidden` if the last response of the API server was a 403. For a forbidden namespace,
 * all objects that were read before are kept.
 */
export type NamespaceAccess = 'closed' | 'pending' | 'readable' | 'forbidden';

/** A namespace can be forbidden for a long time, and there will be a log message for each attempt. */
const BACKOFF: Backoff = { firstMs: 200, mostMs: 60_000 };

/**
 * How long lists can fail, or can get no response, before nobody waits for this namespace anymore, in milliseconds. The
 * trouble of a namespace must not stop the others.
 */
const FAILING_AFTER_MS = 10_000;

/** The values of an object, one for each view. */
type Values = readonly unknown[];

/**
 * NamespaceWatch is a cache for the objects in a single namespace. It also knows if the API server allows us to read
 * them.
 */
export interface NamespaceWatch {
  readonly access: () => Exclude<NamespaceAccess, 'closed'>;
  /** Whether the objects in this namespace have been listed before. */
  readonly wasRead: () => boolean;
  /** Same as `wasRead`, but false after a `relist` that has failed, until the objects have been listed again. */
  readonly isCurrent: () => boolean;
  /**
   * Returns the last error if all lists have failed for 10 seconds for another reason than a missing permission. A list
   * without a response for 10 seconds counts as failed.
   */
  readonly failure: () => unknown;
  /** Resolves when the namespace has been listed, or if it is forbidden, failing, or closed. */
  readonly settled: Promise<void>;
  /** Lists the objects in the namespace again. Resolves as well if this is forbidden or failing, or the namespace is closed. */
  readonly relist: () => Promise<void>;
  /** Undefined before the first message, or if there is no connection. */
  readonly lastHeardMs: () => number | undefined;
  /** Ends the watch, keeping the objects. */
  readonly stop: () => Promise<void>;
  /** Ends the watch and reports all objects as deleted. */
  readonly close: () => void;
}

/** Starts to watch a namespace. Objects without any values are not included. */
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
  const relists = createRelists(onAccess);
  let forbidden = false;

  function release(): void {
    settled.resolve();
    relists.release();
  }

  function setForbidden(is: boolean): void {
    if (end.signal.aborted) return;
    if (is) release();
    if (forbidden === is) return;
    forbidden = is;
    onAccess();
  }

  const noted = noteFailures(noteAccess(options.client, setForbidden), options.clock, isFirst => {
    if (end.signal.aborted) return;
    release();
    if (isFirst) onAccess();
  });

  const reflector = createReflector<AnyObject, Values>({
    ...connection,
    client: noted.client,
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
    isCurrent: () => reflector.hasSynced() && !relists.isMissing(),
    failure: noted.failure,
    settled: settled.promise,
    relist: () => relists.wait(reflector.relist(), noted.failure),
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

/**
 * Tracks the callers waiting for a list, and whether one of them was released without it because the lists fail. `onRead`
 * is called when this list has been read after all.
 */
function createRelists(onRead: () => void) {
  const waiting = new Set<() => void>();
  let isMissing = false;
  return {
    isMissing: () => isMissing,
    release(): void {
      for (const resolve of waiting) resolve();
      waiting.clear();
    },
    async wait(list: Promise<void>, failure: () => unknown): Promise<void> {
      const released = Promise.withResolvers<void>();
      waiting.add(released.resolve);
      const read = list.then(
        () => {
          const wasMissing = isMissing;
          isMissing = false;
          if (wasMissing) onRead();
        },
        () => {},
      );
      await Promise.race([released.promise, read]);
      waiting.delete(released.resolve);
      if (failure() !== undefined) isMissing = true;
    },
  };
}

/** Returns a client that reports requests denied by the API server. */
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
    async *watch<T>(...args: Parameters<KubeClient['watch']>) {
      try {
        for await (const event of client.watch<T>(...args)) {
          // A refused watch is retried without another list.
          note(false);
          yield event;
        }
      } catch (error) {
        throw noted(error);
      }
    },
  };
}

/**
 * Returns a client that calls `onFailing` for each failed list after lists have been failing for too long, and the last of
 * these errors. It is also called every 10 seconds while there is no response. A missing permission is not included.
 */
function noteFailures(
  client: Pick<KubeClient, 'list' | 'watch'>,
  { nowMs, setTimer }: Pick<Clock, 'nowMs' | 'setTimer'>,
  onFailing: (isFirst: boolean) => void,
): { readonly client: Pick<KubeClient, 'list' | 'watch'>; readonly failure: () => unknown } {
  let sinceMs: number | undefined;
  let failure: unknown;
  function note(beganMs: number, error: unknown): void {
    sinceMs = error === undefined || isKubeError(error, 403) ? undefined : (sinceMs ?? beganMs);
    const isFirst = failure === undefined;
    failure = sinceMs !== undefined && nowMs() - sinceMs >= FAILING_AFTER_MS ? error : undefined;
    if (failure !== undefined) onFailing(isFirst);
  }
  const list: KubeClient['list'] = async (...args) => {
    const beganMs = nowMs();
    const [resource, , { namespace } = {}] = args;
    const noteSilence = () => {
      note(beganMs, notCompleted(collectionPath(resource, namespace)));
      cancel = setTimer(noteSilence, FAILING_AFTER_MS);
    };
    let cancel = setTimer(noteSilence, FAILING_AFTER_MS);
    try {
      const answer = await client.list(...args);
      note(beganMs, undefined);
      return answer;
    } catch (error) {
      note(beganMs, error);
      throw error;
    } finally {
      cancel();
    }
  };
  return { client: { list, watch: client.watch }, failure: () => failure };
}

function notCompleted(path: string): KubeError {
  const detail = `not completed within ${FAILING_AFTER_MS / 1_000} seconds`;
  return new KubeError({ call: `LIST ${path}`, status: NO_ANSWER, reason: 'Timeout', detail });
}
