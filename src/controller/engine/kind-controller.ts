import type { KubeClient } from '../../kube/client.ts';
import { isKubeError, isStale } from '../../kube/kube-error.ts';
import { type KubeObject, keyOf } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { Clock } from '../../time/clock.ts';
import type { ControllerMetrics } from './controller-metrics.ts';
import type { EventRecorder } from './event-recorder.ts';
import { reportFailure } from './failure.ts';
import { addFinalizer, hasFinalizer, removeFinalizer } from './finalizer.ts';
import { type Controller, createKeyedController, type KeySource, type ReconcileContext } from './keyed-controller.ts';
import { createMissingReferences } from './missing-references.ts';
import type { EventNote, Finalization, Outcome } from './outcome.ts';
import { type CommonStatus, createStatusWriter } from './status-writer.ts';
import type { RetryPauses } from './work-queue.ts';

/** What a kind's cache holds: the projection must keep metadata (see `slimObject`), spec and status. */
export type Reconcilable = KubeObject<unknown, CommonStatus>;

type StatusOf<P extends Reconcilable> = NonNullable<P['status']>;

/** What a kind's room says; the engine does the rest. */
export type KindControllerOptions<P extends Reconcilable> = {
  readonly name: string;
  readonly reflector: Reflector<P>;
  /** Makes the world as the object says; never called for an object that is being deleted. */
  readonly reconcile: (object: P, context: ReconcileContext) => Promise<Outcome<StatusOf<P>>>;
  /**
   * Undoes what `reconcile` did outside of Kubernetes. With it, every object gets the finalizer before its first
   * reconcile, and loses it when this answers `done`.
   */
  readonly finalize?: (object: P, context: ReconcileContext) => Promise<Finalization<StatusOf<P>>>;
  /** Fields of the status that follow from its conditions, whatever they were written for. */
  readonly fieldsOf?: (conditions: Outcome['conditions']) => object;
  /** What else this kind's objects depend on; gives keys (`namespace/name`) of this kind. */
  readonly sources?: readonly KeySource[];
  /** Objects worked on at once. Default 1. */
  readonly workers?: number;
  readonly retry?: RetryPauses;
  readonly client: Pick<KubeClient, 'apply' | 'mergePatch'>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  readonly tracing?: Tracing | undefined;
};

/**
 * The controller of one kind: finalizer before the first effect, one status write when something differs and none
 * when nothing does, Events for what changed, retries for what failed.
 */
export function createKindController<P extends Reconcilable>(options: KindControllerOptions<P>): Controller {
  const { reflector, client, events, finalize, clock } = options;
  const { resource } = reflector;
  const status = createStatusWriter<P['spec'], CommonStatus>({ client, resource, wallMs: clock.wallMs });
  const references = createMissingReferences(clock.wallMs);
  /** Key → uid of what was let go and is in the cache still: there is nothing left to undo. */
  const letGo = new Map<string, string>();

  const own: KeySource = {
    reflector,
    keys: () => reflector.store.keys(),
    subscribe: add =>
      reflector.subscribe((_change, key, old, current) => {
        if (current === undefined || !status.takeEcho(old, current)) add(key);
      }),
  };

  /** An object that is gone by now needs no status. */
  async function write(object: P, said: Pick<Outcome, 'status' | 'conditions' | 'events'>, signal: AbortSignal) {
    const fields = { ...said.status, ...options.fieldsOf?.(said.conditions) };
    try {
      if (!(await status.write(object, fields, said.conditions, signal))) return;
    } catch (error) {
      if (isKubeError(error, 404)) return;
      throw error;
    }
    for (const note of said.events ?? []) record(object, note);
  }

  function record(object: P, note: EventNote): void {
    events.record({ resource, metadata: object.metadata }, note);
  }

  async function writeFailure(object: P, error: unknown, { failures, signal, log }: ReconcileContext): Promise<void> {
    if (signal.aborted || isStale(error)) return;
    const { conditions, observedGeneration: _, ...fields } = object.status ?? {};
    const report = reportFailure(error, { generation: object.metadata.generation ?? 0, conditions }, failures);
    if (report === undefined) return;
    const said = { status: fields, conditions: report.conditions, events: [report.event] };
    await write(object, said, signal).catch((err: unknown) => log.debug({ err }, 'a failure could not be written'));
  }

  /** Answers milliseconds until the next turn. */
  async function reconcile(object: P, context: ReconcileContext): Promise<number | undefined> {
    const patching = { client, resource, signal: context.signal };
    const kept = finalize === undefined || hasFinalizer(object) ? object : await addFinalizer(object, patching);
    const generation = kept.metadata.generation ?? 0;
    const waiting = { key: keyOf(kept.metadata), generation, conditions: kept.status?.conditions };
    const outcome = references.judge(waiting, await options.reconcile(kept, context));
    await write(kept, outcome, context.signal);
    return outcome.requeueAfterMs;
  }

  async function release(object: P, context: ReconcileContext): Promise<number | undefined> {
    const key = keyOf(object.metadata);
    if (finalize === undefined || !hasFinalizer(object) || letGo.get(key) === object.metadata.uid) return undefined;
    const answer = await finalize(object, context);
    if (answer === 'done') {
      await removeFinalizer(object, { client, resource, signal: context.signal });
      letGo.set(key, object.metadata.uid);
      return undefined;
    }
    await write(object, answer, context.signal);
    return answer.waitingMs;
  }

  return createKeyedController({
    name: options.name,
    clock,
    log: options.log,
    metrics: options.metrics,
    tracing: options.tracing,
    sources: [own, ...(options.sources ?? [])],
    ...(options.workers === undefined ? {} : { workers: options.workers }),
    ...(options.retry === undefined ? {} : { retry: options.retry }),
    reconcile: async (key, context) => {
      const cached = reflector.store.get(key);
      if (cached === undefined) {
        letGo.delete(key);
        references.forget(key);
        return status.forget(key);
      }
      const object = status.latest(cached) as P;
      try {
        const turn = object.metadata.deletionTimestamp === undefined ? reconcile : release;
        return { requeueAfterMs: await turn(object, context) };
      } catch (error) {
        await writeFailure(object, error, context);
        throw error;
      }
    },
  });
}
