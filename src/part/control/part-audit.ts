import { hash } from 'node:crypto';
import type { RedisClient } from '../../redis/client.ts';
import type { PartAudit, PartDifference } from '../../redis/control-audit.ts';
import type { GateChange } from '../gate/gate.ts';
import { createListedParts } from '../members/listed-parts.ts';
import { type OpenKeys, planPart } from './part-changes.ts';
import { formerGenerations, readPart } from './stored-part.ts';
import { type WantedPart, wantedParts } from './wanted-part.ts';

const KINDS = {
  begin: 'part',
  meta: 'part',
  progress: 'part',
  marker: 'part',
  row: 'part-row',
  drop: 'part-row',
  endpoint: 'part-endpoint',
  unmark: 'part-activation',
  clear: 'part-activation',
  on: 'part-activation',
  off: 'part-activation',
} as const satisfies Record<GateChange['kind'], PartDifference['what']>;

type Activated = Extract<GateChange, { readonly kind: 'on' | 'off' }>;
const isActivation = (change: GateChange): change is Activated => change.kind === 'on' || change.kind === 'off';

/** Returns the changes as differences: each activation of its own, of all else one of a kind. */
function differencesOf(
  { part: { queue }, slots }: WantedPart,
  changes: readonly GateChange[],
): readonly PartDifference[] {
  const activations = changes.filter(isActivation).map(({ kind, slot, groupKey }): PartDifference => {
    const activation = { integration: slots.get(slot)?.integration, groupKey, removes: kind === 'off' };
    return { queue, what: 'part-activation', detail: `${kind} ${slot}`, activation };
  });
  const others = Map.groupBy(
    changes.filter(change => !isActivation(change)),
    ({ kind }) => KINDS[kind],
  );
  const rest = [...others].map(([what, found]): PartDifference => {
    const texts = found.map(each => JSON.stringify(each)).toSorted();
    return { queue, what, detail: hash('sha256', texts.join('\n'), 'base64url').slice(0, 16) };
  });
  return [...rest, ...activations];
}

/**
 * Creates an audit that compares what is in parts with what would be written to them, so that it finds exactly what a sync that
 * reads them repairs. It holds one part at a time.
 *
 * @param pace awaited before each command
 */
export function createPartAudit(redis: RedisClient, pace: () => Promise<void>): PartAudit {
  const listed = createListedParts(redis, () => Promise.reject(new Error('the audit writes nothing')));

  async function compareOne(wanted: WantedPart, openKeys: OpenKeys): Promise<readonly PartDifference[]> {
    const { part } = wanted;
    const stored = await readPart(redis, part, pace);
    const { before, activations, after } = planPart(stored, wanted, openKeys, new Set());
    const differences = differencesOf(wanted, [...before, ...activations, ...after]);
    const former = formerGenerations(stored, part).map((gen): PartDifference => {
      return { queue: part.queue, what: 'part', detail: `left ${gen}` };
    });
    return [...former, ...differences];
  }

  return {
    async *compare(routes, openKeys) {
      const parts = [...wantedParts(routes).values()];
      const missing = await listed.missing(
        parts.map(({ part }) => part),
        pace,
      );
      if (missing.length > 0) {
        yield missing.map(({ queue, gen }) => ({ queue, what: 'part-list', detail: gen }));
      }
      for (const wanted of parts) {
        const differences = await compareOne(wanted, () => openKeys);
        if (differences.length > 0) yield differences;
      }
    },
    scan: () => listed.scan(pace),
  };
}
