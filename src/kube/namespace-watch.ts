import type { Logger } from '../telemetry/log.ts';
import type { Backoff } from '../time/backoff.ts';
import type { Clock } from '../time/clock.ts';
import { createFairTurns } from '../time/fair-turns.ts';
import type { KubeClient } from './client.ts';
import { isKubeError, KubeError, NO_ANSWER } from './kube-error.ts';
import type { AnyObject } from './object.ts';
import { createReflector } from './reflector.ts';
import { collectionPath, type Resource } from './resource.ts';

/**
 * The access to the objects in a namespace: `closed` if the objects are not required, `pending` until they have been
 * listed, and `forbidden` if the last response of the API server was a 403. For a forbidden namespace, all objects that
 * were read before are kept.
 */
export type NamespaceAccess = 'closed' | 'pending' | 'readable' | 'forbidden';

/** A namespace can be forbidden for a long time. Each attempt would log a message. */
const BACKOFF: Backoff = { firstMs: 200, mostMs: 60_000 };

/** The time after which a namespace whose lists fail or get no response stops delaying others, in milliseconds. */
const FAILING_AFTER_MS = 10_000;

/**
 * The number of namespaces to list at the same time. When the process starts, or begins to lead, all of them are listed.
 * Other requests need connections too.
 */
const LISTS_AT_ONCE = 12;
/** The same, including those that take long. If a list had to wait for a connection, it would soon count as failed. */
const MOST_LISTS = 15;

/**
 * The time after which another list may start in place of one that gets no response, in milliseconds. Lists that wait
 * for their turn can then still succeed before they count as failed.
 */
const TURN_MS = FAILING_AFTER_MS / 2;

/** The time that a list can wait for its turn before nobody waits for this namespace anymore, in milliseconds. */
const TURN_WITHIN_MS = 300_000;

/** The values of an object, one for each view. */
type Values = readonly unknown[];

/**
 * NamespaceWatch is a cache for the objects in a single namespace. The watch also knows whether the API server allows
 * us to read them.
 */
export interface NamespaceWatch {
  readonly access: () => Exclude<NamespaceAccess, 'closed'>;
  /** Returns true if the objects in this namespace have been listed before. */
  readonly wasRead: () => boolean;
  /** Same as `wasRead`, but false after a `relist` that has failed, until the objects have been listed again. */
  readonly isCurrent: () => boolean;
  /**
   * Returns the last error if all lists have failed for 10 seconds for another reason than a missing permission. A list
   * counts as failed if there is no response 10 seconds after it was sent, or if no list of any namespace ends for 10
   * seconds while it waits for its turn.
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
  readonly takeTurn: TakeTurn;
  readonly resource: Resource;
  readonly namespace: string;
  readonly fieldSelector?: string;
  readonly project: (object: AnyObject) => Values;
  readonly onChange: (key: string, old: Values | undefined, current: Values | undefined) => void;
  readonly onAccess: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}): NamespaceWatch {
  const { onChange, onAccess, takeTurn, ...connection } = options;
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

  const noted = noteFailures(noteAccess(options.client, setForbidden), takeTurn, options.clock, isFirst => {
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

/** Waits for the turn of a list. Returns a function to call when the list has ended. */
export type TakeTurn = (
  signal: AbortSignal | undefined,
  /** Called every 10 seconds while no other list ends, or after it has waited for too long. */
  onStuck: () => void,
) => Promise<() => void>;

/**
 * Creates the turns of the lists of all namespaces. Without them, thousands of requests would wait for a connection until
 * they time out.
 */
export function createListTurns(clock: Pick<Clock, 'nowMs' | 'setTimer'>): TakeTurn {
  const patient = { mostWaiting: Number.POSITIVE_INFINITY, mostWaitMs: Number.POSITIVE_INFINITY };
  const limit = (places: number, holdMs: number) =>
    createFairTurns({ places, holdMs, ...patient, clock, nextIteration: queueMicrotask });
  const [turns, requests] = [limit(LISTS_AT_ONCE, TURN_MS), limit(MOST_LISTS, TURN_WITHIN_MS)];
  let endedMs = Number.NEGATIVE_INFINITY;
  return async (signal, onStuck) => {
    const beganMs = clock.nowMs();
    const look = () => {
      const now = clock.nowMs();
      if (now - Math.max(beganMs, endedMs) >= FAILING_AFTER_MS || now - beganMs >= TURN_WITHIN_MS) onStuck();
      cancel = clock.setTimer(look, FAILING_AFTER_MS);
    };
    let cancel = clock.setTimer(look, FAILING_AFTER_MS);
    const options = { isPatient: true, ...(signal === undefined ? {} : { signal }) };
    const taken = [await requests.take('', options), await turns.take('', options)];
    const leave = () => taken.filter(place => typeof place !== 'string').forEach(place => place());
    cancel();
    if (signal?.aborted) leave();
    signal?.throwIfAborted();
    return () => {
      endedMs = clock.nowMs();
      leave();
    };
  };
}

/**
 * Returns a client that calls `onFailing` for each failed list after lists have been failing for too long, and the last
 * of these errors. `onFailing` is also called every 10 seconds while there is no response. A missing permission is not
 * included.
 */
function noteFailures(
  client: Pick<KubeClient, 'list' | 'watch'>,
  takeTurn: TakeTurn,
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
    const [resource, , { namespace, signal } = {}] = args;
    const path = collectionPath(resource, namespace);
    const queuedMs = nowMs();
    const endTurn = await takeTurn(signal, () => note(queuedMs, lateList(path, NOT_SENT)));
    const beganMs = nowMs();
    const noteSilence = () => {
      note(beganMs, lateList(path, NOT_COMPLETED));
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
      endTurn();
    }
  };
  return { client: { list, watch: client.watch }, failure: () => failure };
}

const NOT_COMPLETED = `not completed within ${FAILING_AFTER_MS / 1_000} seconds`;
const NOT_SENT = 'not sent yet, because the API server does not complete the lists of other namespaces in time';

function lateList(path: string, detail: string): KubeError {
  return new KubeError({ call: `LIST ${path}`, status: NO_ANSWER, reason: 'Timeout', detail });
}
