import { isMissing, isStale } from '../../../kube/kube-error.ts';
import { keyOf } from '../../../kube/object.ts';
import type { Cached } from '../../caches/caches.ts';
import { planPaused } from '../../context/paused.ts';
import { reportFailure } from '../../engine/failure.ts';
import type { Attempt } from '../../engine/keyed-controller.ts';
import { createMissingReferences } from '../../engine/missing-references.ts';
import type { CommonStatus, StatusWriter } from '../../engine/status-writer.ts';
import type { Pair } from './pair.ts';
import { type ActivationFacts, planActivation } from './plan.ts';

type Activations = readonly Cached<'Activation'>[];

export type ActivationStatusWriter = StatusWriter<Cached<'Activation'>['spec'], CommonStatus>;

/**
 * Creates the functions that write the statuses of all objects in a pair. Other kinds leave this to the engine. The
 * objects must contain the most recently written status.
 */
export function createPairStatuses(writer: ActivationStatusWriter, wallMs: () => number) {
  const references = createMissingReferences(wallMs);
  return {
    /**
     * Writes the statuses of an applied pair and returns when to requeue it. Objects which no longer exist are skipped.
     */
    async writeApplied(
      pair: Pair,
      activations: Activations,
      facts: Pick<ActivationFacts, 'open' | 'workspaceExists' | 'state'>,
      signal: AbortSignal,
    ): Promise<{ readonly requeueAfterMs: number } | undefined> {
      const pausesMs: number[] = [];
      const [revokedBy] = activations
        .flatMap(({ metadata, spec }) => (spec.revoked === true ? [metadata.name] : []))
        .toSorted();
      for (const activation of activations) {
        const { metadata, status } = activation;
        const waiting = {
          key: keyOf(metadata),
          generation: metadata.generation ?? 0,
          conditions: status?.conditions,
        };
        const planned = planActivation({ ...pair, ...facts, revokedBy, revoked: activation.spec.revoked === true });
        const outcome = references.judge(waiting, planned);
        if (outcome.requeueAfterMs !== undefined) pausesMs.push(outcome.requeueAfterMs);
        try {
          await writer.write(activation, outcome.status ?? {}, outcome.conditions, signal);
        } catch (error) {
          if (!isMissing(error)) throw error;
        }
      }
      return pausesMs.length === 0 ? undefined : { requeueAfterMs: Math.min(...pausesMs) };
    },

    /** Updates the statuses to indicate that the workspace is paused. */
    async writePaused(activations: Activations, workspace: string, signal: AbortSignal): Promise<void> {
      for (const activation of activations) {
        const outcome = planPaused(activation, workspace);
        await writer.write(activation, outcome.status ?? {}, outcome.conditions, signal);
      }
    },

    /**
     * Updates the statuses to indicate a failure. Events can't be recorded here, because there may be 100,000
     * Activations.
     */
    async writeFailure(activations: Activations, error: unknown, { failures, signal, log }: Attempt): Promise<void> {
      if (signal.aborted || isStale(error)) return;
      for (const activation of activations) {
        const { conditions, observedGeneration: _, ...fields } = activation.status ?? {};
        const generation = activation.metadata.generation ?? 0;
        const report = reportFailure(error, { generation, conditions }, failures);
        if (report === undefined) continue;
        await writer
          .write(activation, fields, report.conditions, signal)
          .catch((err: unknown) => log.debug({ err }, 'failed to write a failure'));
      }
    },
  };
}
