import { hash } from 'node:crypto';
import type { QueueRoute, TenantRoutes } from '../../core/routing/routes.ts';
import type { PartAudit, PartDifference, SubscriptionState } from '../../record/control-audit.ts';
import type { RedisClient } from '../../redis/client.ts';
import { inSlices } from '../../time/slices.ts';
import type { GateChange } from '../gate/gate.ts';
import { slotOf } from '../keys.ts';
import { createListedParts } from '../members/listed-parts.ts';
import { createReadSlots } from '../state/slots.ts';
import { type OpenKeys, planPart } from './part-changes.ts';
import { formerGenerations, readPart } from './stored-part.ts';
import { partOf, type WantedPart, wantedParts } from './wanted-part.ts';

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
  unpark: 'part-activation',
} as const satisfies Record<GateChange['kind'], PartDifference['what']>;

/** The number of subscriptions that are read by a command. */
const STATES_AT_ONCE = 200;

type Activated = Extract<GateChange, { readonly kind: 'on' | 'off' }>;
const isActivation = (change: GateChange): change is Activated => change.kind === 'on' || change.kind === 'off';

/**
 * Returns the changes as differences. For activations, there is a difference for each of them. For everything else,
 * there is one for each kind.
 */
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

/** Returns the subscriptions for each stream in the routes. */
function subscriptionsByQueue({ queues, integrations }: TenantRoutes) {
  const all = Object.values(integrations).flatMap(({ subscriptions }) =>
    Object.entries(subscriptions).map(([sub, { inc, queue }]) => ({ sub, inc, queue })),
  );
  return Map.groupBy(
    all.filter(({ queue }) => Object.hasOwn(queues, queue)),
    ({ queue }) => queue,
  );
}

/**
 * Creates an audit that compares the stored parts with the desired ones. The audit finds the same differences that a
 * full sync would repair. There is only a single part in memory at a time.
 *
 * @param pace awaited before each command
 */
export function createPartAudit(redis: RedisClient, pace: () => Promise<void>): PartAudit {
  const listed = createListedParts(redis, () => Promise.reject(new Error('the audit writes nothing')));

  const readSlots = createReadSlots(redis);

  async function compareOne(wanted: WantedPart, openKeys: OpenKeys): Promise<readonly PartDifference[]> {
    const { part } = wanted;
    const stored = await readPart(redis, part, pace);
    const { before, activations, after } = await inSlices(planPart(stored, wanted, openKeys, new Set()));
    const differences = differencesOf(wanted, [...before, ...activations, ...after]);
    const former = formerGenerations(stored, part).map((gen): PartDifference => {
      return { queue: part.queue, what: 'part', detail: `left ${gen}` };
    });
    return [...former, ...differences];
  }

  return {
    async *compare(routes, openKeys) {
      const parts = [...(await inSlices(wantedParts(routes))).values()];
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
    async readStates(routes) {
      const states = new Map<string, SubscriptionState>();
      for (const [queue, subs] of subscriptionsByQueue(routes)) {
        const part = partOf(routes.tenant, queue, routes.queues[queue] as QueueRoute);
        for (let at = 0; at < subs.length; at += STATES_AT_ONCE) {
          const some = subs.slice(at, at + STATES_AT_ONCE);
          await pace();
          const found = await readSlots(
            part,
            some.map(({ sub, inc }) => slotOf(sub, inc)),
          );
          for (const [i, { sub, inc }] of some.entries()) {
            const state = found[i];
            if (state !== undefined) states.set(sub, { inc, ...state });
          }
        }
      }
      return states;
    },
    scan: () => listed.scan(pace),
  };
}
