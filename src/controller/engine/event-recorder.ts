import type { KubeClient } from '../../kube/client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { type ObjectMeta, timestampOf } from '../../kube/object.ts';
import { apiVersionOf, EVENTS, type Resource } from '../../kube/resource.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import type { DroppedEvent, EventMetrics } from './event-metrics.ts';
import { createSharedBucket, isShareUsed } from './event-shares.ts';
import type { EventNote } from './outcome.ts';

/** The object an Event is about. */
type Regarding = {
  readonly resource: Resource;
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'resourceVersion'>;
};

export type EventRecorder = {
  /**
   * Adds an Event to the queue without waiting until the Event has been sent. Never throws, but the Event may be
   * dropped.
   */
  readonly record: (object: Regarding, note: EventNote) => void;
  /** Resolves when all recorded Events have been sent or dropped. */
  readonly flush: () => Promise<void>;
};

/** Identical Events within 10 minutes are combined into one with a count, as in client-go. */
const SAME_EVENT_MS = 600_000;
/**
 * The spam filter allows a burst of 25 Events for each object and then one Event every 5 minutes. The numbers are those
 * of client-go.
 */
const BURST = 25;
const REFILL_MS = 300_000;
/**
 * For all objects together, a burst of 1,000 Events is allowed. After that, there can be 50 Events per second, which is
 * the rate used by a kubelet (eventRecordQPS). A single workspace is allowed to use half of the burst, which is enough
 * to apply a few hundred objects. client-go does not have this limit, but a change that affects all objects (for
 * example, an outage) would otherwise result in one Event per object.
 */
const PROCESS_BURST = 1_000;
const PROCESS_PER_MS = 50 / 1_000;
/** Cache size, same as in client-go. When full, the oldest entries are dropped. */
const MOST_REMEMBERED = 4_096;
/**
 * The maximum number of Events that can wait to be sent. A single workspace is allowed to use half of this. Beyond this
 * limit, new Events will be dropped.
 */
const MOST_PENDING = 2_000;
/** The maximum number of characters in an Event message, as defined in core/v1. */
const LONGEST_MESSAGE = 1_024;
/** Namespace used for Events on cluster-scoped objects. */
const CLUSTER_EVENTS_NAMESPACE = 'default';

/**
 * Creates a spam filter modelled after the one in client-go. The filter returns true if an Event for the given UID may
 * be sent.
 */
function createSpamFilter({ nowMs }: Pick<Clock, 'nowMs'>): (uid: string) => boolean {
  // If a bucket has not been used for this time, it is full again and can be removed.
  const buckets = createExpiringMap<{ readonly tokens: number; readonly filledMs: number }>({
    ttlMs: BURST * REFILL_MS,
    entries: MOST_REMEMBERED,
    nowMs,
  });
  return uid => {
    const bucket = buckets.get(uid) ?? { tokens: BURST, filledMs: nowMs() };
    const refills = Math.floor((nowMs() - bucket.filledMs) / REFILL_MS);
    const tokens = Math.min(BURST, bucket.tokens + refills);
    buckets.set(uid, { tokens: Math.max(0, tokens - 1), filledMs: bucket.filledMs + refills * REFILL_MS });
    return tokens > 0;
  };
}

/** Counts the Events that are waiting to be sent for each workspace. */
function createPendingCounts() {
  const counts = new Map<string, number>();
  let total = 0;
  const add = (workspace: string, change: 1 | -1) => {
    const count = (counts.get(workspace) ?? 0) + change;
    total += change;
    if (count === 0) counts.delete(workspace);
    else counts.set(workspace, count);
  };
  return { add, isFull: (workspace: string) => isShareUsed(counts.get(workspace) ?? 0, total, MOST_PENDING) };
}

/**
 * Returns the workspace to which an object belongs. A Workspace's name is the same as the name of its namespace.
 */
function workspaceOf({ metadata }: Regarding): string {
  return metadata.namespace ?? metadata.name;
}

/** Returns a reference to the object of an Event, in the format of core/v1. */
function involvedObject({ resource, metadata: { name, namespace, uid, resourceVersion } }: Regarding) {
  const named = { apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid, resourceVersion };
  return namespace === undefined ? named : { ...named, namespace };
}

/**
 * Creates a recorder for Events in core/v1. You can display them using `kubectl describe` and `kubectl get events`.
 *
 * @param options.instance name of the process, e.g. the pod name
 */
export function createEventRecorder(options: {
  client: Pick<KubeClient, 'create' | 'mergePatch'>;
  clock: Pick<Clock, 'nowMs' | 'wallMs'>;
  log: Logger;
  metrics: EventMetrics;
  component: string;
  instance: string;
  random?: () => number;
}): EventRecorder {
  const { client, clock, log, metrics, component, instance, random = Math.random } = options;
  const mayRecord = createSpamFilter(clock);
  const bucket = createSharedBucket(PROCESS_BURST, PROCESS_PER_MS, clock);
  const pending = createPendingCounts();
  const seen = createExpiringMap<{ readonly name: string; readonly count: number }>({
    ttlMs: SAME_EVENT_MS,
    entries: MOST_REMEMBERED,
    nowMs: clock.nowMs,
  });
  let chain = Promise.resolve();

  /** Returns the reason if an Event for the given UID must be dropped, or undefined otherwise. */
  function limitReached(workspace: string, uid: string): DroppedEvent | undefined {
    if (pending.isFull(workspace)) return 'queue_full';
    if (bucket.isEmpty()) return 'process_limit';
    if (bucket.isShareTaken(workspace)) return 'workspace_limit';
    if (!mayRecord(uid)) return 'object_limit';
    bucket.take(workspace);
    return undefined;
  }

  /** Creates an Event, or increments its count. During an API server outage, an Event can wait for minutes. */
  async function send(object: Regarding, { type, reason, message: whole }: EventNote, lastTimestamp: string) {
    const { metadata } = object;
    const message = whole.slice(0, LONGEST_MESSAGE);
    const identity = JSON.stringify([metadata.uid, type, reason, message]);
    const namespace = metadata.namespace ?? CLUSTER_EVENTS_NAMESPACE;
    const before = seen.get(identity);
    if (before !== undefined) {
      const count = before.count + 1;
      seen.set(identity, { name: before.name, count });
      try {
        await client.mergePatch(EVENTS, { namespace, name: before.name }, { count, lastTimestamp });
        return;
      } catch (error) {
        // Events are deleted by the API server after an hour, in which case we need to create a new one.
        if (!isKubeError(error, 404)) throw error;
      }
    }
    const suffix = Math.floor(random() * 2 ** 48).toString(16);
    const name = `${metadata.name}.${clock.wallMs().toString(16)}${suffix.padStart(12, '0')}`;
    const times = { count: 1, firstTimestamp: lastTimestamp, lastTimestamp };
    const source = { source: { component }, reportingComponent: component, reportingInstance: instance };
    const body = { involvedObject: involvedObject(object), type, reason, message, ...times, ...source };
    await client.create(EVENTS, { namespace, name }, body);
    seen.set(identity, { name, count: 1 });
  }

  return {
    record: (object, note) => {
      const workspace = workspaceOf(object);
      const limit = limitReached(workspace, object.metadata.uid);
      if (limit !== undefined) {
        metrics.dropped(limit);
        log.debug({ reason: note.reason, object: object.metadata.name, limit }, 'dropped an Event');
        return;
      }
      pending.add(workspace, 1);
      const timestamp = timestampOf(clock.wallMs());
      // Events are sent in sequence because the count of an Event can only be patched after the Event has been created.
      chain = chain
        .then(() => send(object, note, timestamp))
        .catch((err: unknown) => {
          metrics.dropped('rejected');
          log.debug({ err, reason: note.reason }, 'failed to record an Event');
        })
        .finally(() => pending.add(workspace, -1));
    },
    flush: () => chain,
  };
}
