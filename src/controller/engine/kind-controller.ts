import type { KubeClient } from '../../kube/client.ts';
import { isMissing, isStale } from '../../kube/kube-error.ts';
import { type KubeObject, keyOf } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { Backoff } from '../../time/backoff.ts';
import type { Clock } from '../../time/clock.ts';
import type { ControllerMetrics } from './controller-metrics.ts';
import type { EventRecorder } from './event-recorder.ts';
import { reportFailure } from './failure.ts';
import { addFinalizer, hasFinalizer, removeFinalizer } from './finalizer.ts';
import { type Attempt, type Controller, createKeyedController, type KeySource } from './keyed-controller.ts';
import { createMissingReferences } from './missing-references.ts';
import type { Finalization, Outcome } from './outcome.ts';
import { type CommonStatus, createStatusWriter, type StatusWriter } from './status-writer.ts';

/**
 * An object of a kind, as it is stored in the cache. The projection must preserve the spec, the status, and the
 * metadata returned by `slimObject`.
 */
export type Reconcilable = KubeObject<unknown, CommonStatus>;

type StatusOf<P extends Reconcilable> = NonNullable<P['status']>;

/** The options that can be set for the controller of a single kind. */
export type KindControllerOptions<P extends Reconcilable> = {
  readonly name: string;
  readonly reflector: Reflector<P>;
  /** Reconciles the given object. Not called for objects that are being deleted. */
  readonly reconcile: (object: P, attempt: Attempt) => Promise<Outcome<StatusOf<P>>>;
  /**
   * Removes everything created outside of Kubernetes by `reconcile`. If set, each object will be given a finalizer
   * before it is first reconciled. The finalizer is removed once this function returns `done`.
   */
  readonly finalize?: (object: P, attempt: Attempt) => Promise<Finalization<StatusOf<P>>>;
  /** Returns the fields of the status that depend on the conditions. */
  readonly fieldsOf?: (conditions: Outcome['conditions']) => object;
  /**
   * Other objects that this kind depends on. Each of the sources returns keys of this kind, in the format
   * `namespace/name`.
   */
  readonly sources?: readonly KeySource[];
  /** See `KeyedControllerOptions`. */
  readonly confirm?: ((key: string) => Promise<void>) | undefined;
  /** The number of objects that can be reconciled concurrently. The default is 1. */
  readonly workers?: number | undefined;
  readonly retry?: Backoff | undefined;
  readonly client: Pick<KubeClient, 'apply' | 'mergePatch'>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  readonly tracing?: Tracing | undefined;
};

/**
 * Creates the functions used to write the result of a reconcile to the status. Events will only be recorded if the
 * status changed.
 */
function createReports<P extends Reconcilable>(
  { events, fieldsOf, reflector: { resource } }: Pick<KindControllerOptions<P>, 'events' | 'fieldsOf' | 'reflector'>,
  status: StatusWriter<P['spec'], CommonStatus>,
) {
  /** Writes the status and records the Events. Does nothing if the object no longer exists. */
  async function write(object: P, outcome: Pick<Outcome, 'status' | 'conditions' | 'events'>, signal: AbortSignal) {
    const fields = { ...outcome.status, ...fieldsOf?.(outcome.conditions) };
    try {
      if (!(await status.write(object, fields, outcome.conditions, signal))) return;
    } catch (error) {
      if (isMissing(error)) return;
      throw error;
    }
    for (const note of outcome.events ?? []) events.record({ resource, metadata: object.metadata }, note);
  }

  async function writeFailure(object: P, error: unknown, { failures, signal, log }: Attempt): Promise<void> {
    if (signal.aborted || isStale(error)) return;
    const { conditions, observedGeneration: _, ...fields } = object.status ?? {};
    const report = reportFailure(error, { generation: object.metadata.generation ?? 0, conditions }, failures);
    if (report === undefined) return;
    const outcome = { status: fields, conditions: report.conditions, events: [report.event] };
    await write(object, outcome, signal).catch((err: unknown) =>
      log.debug({ err }, 'failed to write the failure to the status'),
    );
  }

  return { write, writeFailure };
}

/**
 * Removes finalizers, and remembers the objects whose finalizer is only left in the cache. These objects are cleaned
 * up.
 */
function createRemovals() {
  /** The UIDs by key. */
  const removed = new Map<string, string>();
  return {
    has: ({ metadata }: Reconcilable) => removed.get(keyOf(metadata)) === metadata.uid,
    forget: (key: string) => removed.delete(key),
    async remove(object: Reconcilable, patching: Parameters<typeof removeFinalizer>[1]): Promise<void> {
      const key = keyOf(object.metadata);
      // The watch can deliver the change before the response is received.
      removed.set(key, object.metadata.uid);
      try {
        await removeFinalizer(object, patching);
      } catch (error) {
        removed.delete(key);
        throw error;
      }
    },
  };
}

/**
 * Creates the controller for a single kind. The controller adds the finalizer before making any other change, only
 * updates the status when needed, records Events for changes, and retries failures.
 */
export function createKindController<P extends Reconcilable>(options: KindControllerOptions<P>): Controller {
  const { reflector, client, finalize, clock } = options;
  const { resource } = reflector;
  const status = createStatusWriter<P['spec'], CommonStatus>({ client, resource, wallMs: clock.wallMs });
  const { write, writeFailure } = createReports(options, status);
  const references = createMissingReferences(clock.wallMs);
  const removals = createRemovals();

  const own: KeySource = {
    reflector,
    keys: () => reflector.store.keys(),
    subscribe: add =>
      reflector.subscribe((_change, key, old, current) => {
        // If etcd is restored from a backup, the finalizer may be there again.
        if (current !== undefined && !hasFinalizer(current)) removals.forget(key);
        if (current === undefined || !status.takeEcho(old, current)) add(key);
      }),
  };

  /** Returns the number of milliseconds after which the object should be reconciled again. */
  async function reconcile(object: P, attempt: Attempt): Promise<number | undefined> {
    const patching = { client, resource, signal: attempt.signal };
    const kept = finalize === undefined || hasFinalizer(object) ? object : await addFinalizer(object, patching);
    const generation = kept.metadata.generation ?? 0;
    const waiting = { key: keyOf(kept.metadata), generation, conditions: kept.status?.conditions };
    const outcome = references.judge(waiting, await options.reconcile(kept, attempt));
    await write(kept, outcome, attempt.signal);
    return outcome.requeueAfterMs;
  }

  async function release(object: P, attempt: Attempt): Promise<number | undefined> {
    if (finalize === undefined || !hasFinalizer(object) || removals.has(object)) return undefined;
    const answer = await finalize(object, attempt);
    if (answer === 'done') {
      await removals.remove(object, { client, resource, signal: attempt.signal });
      return undefined;
    }
    await write(object, answer, attempt.signal);
    return answer.waitingMs;
  }

  return createKeyedController({
    name: options.name,
    clock,
    log: options.log,
    metrics: options.metrics,
    tracing: options.tracing,
    confirm: options.confirm,
    sources: [own, ...(options.sources ?? [])],
    workers: options.workers,
    retry: options.retry,
    isDeletion: key => reflector.store.get(key)?.metadata.deletionTimestamp !== undefined,
    reconcile: async (key, attempt) => {
      const cached = reflector.store.get(key);
      if (cached === undefined) {
        removals.forget(key);
        references.forget(key);
        return status.forget(key);
      }
      const object = status.latest(cached) as P;
      try {
        const turn = object.metadata.deletionTimestamp === undefined ? reconcile : release;
        return { requeueAfterMs: await turn(object, attempt) };
      } catch (error) {
        await writeFailure(object, error, attempt);
        throw error;
      }
    },
  });
}
