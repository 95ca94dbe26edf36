import type { ListedPart, PartAudit } from '../../record/control-audit.ts';
import type { ControlSweep } from '../../record/control-sweep.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { AuditMetrics } from './audit-metrics.ts';
import { takeTurn } from './turn.ts';

export interface OrphanPartsDeps {
  readonly parts: Pick<PartAudit, 'scan'>;
  readonly purger: Pick<ControlSweep, 'purgePart'>;
  readonly fence: () => number;
  readonly metrics: Pick<AuditMetrics, 'swept'>;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, 'info'>;
}

/**
 * Returns true if this part's stream is included in an object, or in the index of a tenant. If something is in an
 * index, it will be removed together with its queue.
 */
export type IsOwned = (part: ListedPart) => boolean;

/** The maximum number of parts removed in a single pass. */
const MOST_PARTS = 100;

function nameOf({ tenant, queue, gen, number }: ListedPart): string {
  return `${tenant}:${queue}:${number} ${gen}`;
}

/**
 * Finds and removes listed parts whose stream no longer exists. If they stayed, dispatchers would continue to process
 * them. A part is only removed after it was found in two passes.
 */
export function createOrphanParts(deps: OrphanPartsDeps) {
  let seen: ReadonlySet<string> = new Set();
  let turn = 0;

  return {
    forget: (): void => {
      seen = new Set();
    },
    /** Returns the orphans that were already found by the previous call. */
    async find(isOwned: IsOwned): Promise<ListedPart[]> {
      const found = new Map<string, ListedPart>();
      for await (const page of deps.parts.scan()) {
        for (const part of page) if (!isOwned(part)) found.set(nameOf(part), part);
      }
      const again = [...found].filter(([name]) => seen.has(name)).map(([, part]) => part);
      seen = new Set(found.keys());
      return takeTurn(again, MOST_PARTS, turn++);
    },
    /** Returns whether a part has to be closed, or can be removed. */
    isDue: (part: ListedPart, fence: number): Promise<boolean> =>
      deps.purger.purgePart(fence, part, deps.nowMs(), true),
    /** Removes a part. Parts with undelivered data are not removed. */
    async remove(part: ListedPart, fence: number): Promise<void> {
      if (!(await deps.purger.purgePart(fence, part, deps.nowMs(), false))) return;
      deps.metrics.swept('part');
      deps.log.info({ tenant: part.tenant, what: 'part', entry: `${part.queue}:${part.number}` }, 'removed an orphan');
    },
  };
}
