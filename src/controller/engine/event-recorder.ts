import type { KubeClient } from '../../kube/client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { ObjectMeta } from '../../kube/object.ts';
import { apiVersionOf, EVENTS, type Resource } from '../../kube/resource.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import type { EventNote } from './outcome.ts';

/** The object that an Event is about. */
type Regarding = {
  readonly resource: Resource;
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'resourceVersion'>;
};

export type EventRecorder = {
  /** Queues an Event and returns at once. Never throws: an Event may be lost. */
  readonly record: (object: Regarding, note: EventNote) => void;
  /** Resolves when all Events recorded so far have been sent or dropped. */
  readonly flush: () => Promise<void>;
};

/** client-go's correlator: repeats within 10 minutes are one Event with a count. */
const SAME_EVENT_MS = 600_000;
/** client-go's spam filter: a burst of 25 Events for an object, then one every 5 minutes. */
const BURST = 25;
const REFILL_MS = 300_000;
/** client-go's cache size. The oldest entries are dropped. */
const MOST_REMEMBERED = 4_096;
/** Maximum number of Events that wait to be sent. Others are dropped. */
const MOST_PENDING = 1_000;
/** Limit of core/v1, in characters. */
const LONGEST_MESSAGE = 1_024;
/** Namespace for Events about cluster-scoped objects. */
const CLUSTER_EVENTS_NAMESPACE = 'default';

/** Creates client-go's spam filter: a function that returns whether an Event for the object with this uid may be sent. */
function createSpamFilter({ nowMs }: Pick<Clock, 'nowMs'>): (uid: string) => boolean {
  // A bucket that was not used for this long is full, as a new one.
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

/** Returns what the Event is about, as core/v1 has it. */
function involvedObject({ resource, metadata: { name, namespace, uid, resourceVersion } }: Regarding) {
  const named = { apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid, resourceVersion };
  return namespace === undefined ? named : { ...named, namespace };
}

/**
 * Records core/v1 Events, as `kubectl describe` and `kubectl get events` show them.
 *
 * @param options.instance the process, e.g. the pod's name
 */
export function createEventRecorder(options: {
  client: Pick<KubeClient, 'create' | 'mergePatch'>;
  clock: Pick<Clock, 'nowMs' | 'wallMs'>;
  log: Logger;
  component: string;
  instance: string;
  random?: () => number;
}): EventRecorder {
  const { client, clock, log, component, instance, random = Math.random } = options;
  const mayRecord = createSpamFilter(clock);
  const seen = createExpiringMap<{ readonly name: string; readonly count: number }>({
    ttlMs: SAME_EVENT_MS,
    entries: MOST_REMEMBERED,
    nowMs: clock.nowMs,
  });
  let pending = 0;
  let chain = Promise.resolve();

  async function send(object: Regarding, { type, reason, message: whole }: EventNote): Promise<void> {
    const { metadata } = object;
    const message = whole.slice(0, LONGEST_MESSAGE);
    const identity = JSON.stringify([metadata.uid, type, reason, message]);
    const namespace = metadata.namespace ?? CLUSTER_EVENTS_NAMESPACE;
    const lastTimestamp = new Date(clock.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z');
    const before = seen.get(identity);
    if (before !== undefined) {
      const count = before.count + 1;
      seen.set(identity, { name: before.name, count });
      try {
        await client.mergePatch(EVENTS, { namespace, name: before.name }, { count, lastTimestamp });
        return;
      } catch (error) {
        // The API server deletes Events after an hour: create a new one.
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
      if (pending >= MOST_PENDING || !mayRecord(object.metadata.uid)) {
        log.debug(
          { reason: note.reason, object: object.metadata.name },
          'dropped an Event: too many for the object, or too many pending',
        );
        return;
      }
      pending++;
      // One after the other: a count can only be patched once its Event exists.
      chain = chain
        .then(() => send(object, note))
        .catch((err: unknown) => log.debug({ err, reason: note.reason }, 'cannot record an Event'))
        .finally(() => pending--);
    },
    flush: () => chain,
  };
}
