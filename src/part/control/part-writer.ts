import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { SlotPatch } from '../../record/control-plan.ts';
import { FencedError } from '../../record/control-store.ts';
import { openKeysOf } from '../../record/open-keys.ts';
import { withoutSame } from '../../record/tenant-index.ts';
import type { RedisClient } from '../../redis/client.ts';
import { inSlices, type Steps } from '../../time/slices.ts';
import { createGate, type Gate, type GateChange } from '../gate/gate.ts';
import { parseRow, rowText, type SubscriptionRow } from '../gate/subscription-row.ts';
import { type Part, partKeys, REMOVED } from '../keys.ts';
import { createListedParts } from '../members/listed-parts.ts';
import { createSpace } from '../space/space.ts';
import { createPartRemoval } from '../state/part-removal.ts';
import { createDrain, type PartDrain } from '../sweep/drain.ts';
import { beginAgain } from './lost-progress.ts';
import { type OpenKeys, type PartChanges, planPart, storedAs } from './part-changes.ts';
import { formerGenerations, readPart, type StoredPart } from './stored-part.ts';
import { type WantedPart, wantedParts } from './wanted-part.ts';

/** The maximum number of changes in each call of the gate. The call delays all other calls to the part. */
const CHANGES_AT_ONCE = 200;
/** The number of parts that are written at the same time. */
const PARTS_AT_ONCE = 8;

/** Writes the routes to all parts of a tenant. */
export interface PartWriter {
  /**
   * Writes all changes that are needed to get from `have` to `want`. If one of the parts fails, this continues with the
   * others.
   *
   * @param isKnown whether `have` is the stored state. If not, reads the parts first.
   * @throws FencedError if a newer controller leads
   */
  readonly write: (application: {
    readonly fence: number;
    readonly have: TenantRoutes;
    readonly want: TenantRoutes;
    readonly isKnown: boolean;
    readonly openKeys: OpenKeys;
    readonly nowMs: number;
  }) => Promise<void>;
  /**
   * Closes everything which is open in a part but is not included in the routes or in `openKeys`. Writes nothing else.
   */
  readonly close: (fence: number, routes: TenantRoutes, openKeys: OpenKeys) => Promise<void>;
  /**
   * Writes the changes to a single part. Returns the number of changes that had an effect. A removed part has nothing
   * to close.
   *
   * @throws FencedError if a newer controller leads
   */
  readonly change: (part: Part, fence: number, changes: readonly GateChange[]) => Promise<number>;
  /** Removes a part and everything it contains. The part can also be of an earlier generation. */
  readonly remove: (part: Part, fence: number, nowMs: number) => Promise<void>;
}

/** Returns the slots for which the Blocks have ended and the backlog should be skipped. */
function skippingSlots(had: WantedPart | undefined, has: WantedPart): Set<string> {
  const slots = [...has.slots].filter(([slot, { onUnblock, row }]) => {
    return had?.slots.get(slot)?.onUnblock === 'skip' && onUnblock === undefined && row.route !== 'closed';
  });
  return new Set(slots.map(([slot]) => slot));
}

const ROUTES: readonly SubscriptionRow['route'][] = ['open', 'paused', 'closed'];

/** Returns the changes that are needed to close all rows and activations of a part which should not be open. */
function* closingChanges(
  { rows, activations }: StoredPart,
  { slots }: WantedPart,
  openKeys: OpenKeys,
): Steps<GateChange[]> {
  const wanted = new Set<string>();
  for (const [slot, { integration }] of slots) {
    for (const { groupKey } of yield* openKeysOf(openKeys(), integration)) {
      yield;
      wanted.add(slot + groupKey);
    }
  }
  const off: GateChange[] = [];
  for (const active of activations ?? []) {
    yield;
    if (!wanted.has(active)) off.push({ kind: 'off', slot: active.slice(0, 8), groupKey: active.slice(8) });
  }
  const changed = [...rows].flatMap(([slot, text]): GateChange[] => {
    const has = parseRow(text);
    if (has === undefined) return [];
    const { route, send } = slots.get(slot)?.row ?? { route: 'closed', send: 'held' };
    const row: SubscriptionRow = {
      ...has,
      route: ROUTES.indexOf(route) > ROUTES.indexOf(has.route) ? route : has.route,
      send: send === 'held' ? send : has.send,
    };
    return rowText(row) === text ? [] : [{ kind: 'row', slot, row }];
  });
  return [...changed, ...off];
}

/** Writes changes to a part in slices. Returns the tail before the first slice and the number of changes made. */
type Apply = (
  part: Part,
  fence: number,
  changes: readonly GateChange[],
) => Promise<{ readonly tail: string | undefined; readonly count: number }>;

const isClosing = ({ kind }: GateChange): boolean => kind === 'off' || kind === 'drop';

/** Returns true if a change may subject the stored bytes of a part to a limit, or to that of another account. */
const isLimiting = (change: GateChange): boolean =>
  change.kind === 'meta' && (change.field === 'storedMax' || change.field === 'payer') && change.value !== '';

/**
 * Returns true if a part has been removed. In this case, there can't be anything open in it. If a controller has
 * crashed in between, its record may still exist.
 */
async function isRemoved(redis: RedisClient, part: Part): Promise<boolean> {
  const { meta, keys } = partKeys(part);
  return (await redis.call('hget', meta, 'gen')) === REMOVED || (await redis.call('exists', keys)) === 0;
}

function createApply(redis: RedisClient, gate: Gate): Apply {
  return async function apply(part, fence, changes) {
    let tail: string | undefined;
    let count = 0;
    for (let at = 0; at < changes.length; at += CHANGES_AT_ONCE) {
      const slice = changes.slice(at, at + CHANGES_AT_ONCE);
      for (let more = true; more; ) {
        const answer = await gate(part, fence, slice);
        if (answer.answer === 'GONE' && changes.every(isClosing) && (await isRemoved(redis, part))) {
          return { tail, count };
        }
        if (answer.answer !== 'OK') {
          throw answer.answer === 'FENCED'
            ? new FencedError(`a newer controller leads ${partKeys(part).meta}`)
            : new Error(`${partKeys(part).meta} is of another generation`);
        }
        tail ??= answer.tail;
        count += answer.changes;
        more = answer.more;
      }
    }
    return { tail, count };
  };
}

function createClose(redis: RedisClient, gate: Gate, apply: Apply): PartWriter['close'] {
  return async function close(fence, routes, openKeys) {
    await forEach((await inSlices(wantedParts(routes))).values(), async wanted => {
      const { part } = wanted;
      // Raises a part's fence. If the part does not exist any more, there is nothing open in it.
      const { answer } = await gate(part, fence, []);
      if (answer === 'GONE') return;
      if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${partKeys(part).meta}`);
      await apply(part, fence, await inSlices(closingChanges(await readPart(redis, part), wanted, openKeys)));
    });
  };
}

/**
 * Calls `work` for all items, but only for a few of them at the same time. When all items have been processed, this
 * rejects with the first error.
 */
export async function forEach<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]();
  const errors: unknown[] = [];
  const worker = async () => {
    for (let next = rest.next(); !next.done; next = rest.next()) {
      await work(next.value).catch((error: unknown) => errors.push(error));
    }
  };
  await Promise.all(Array.from({ length: PARTS_AT_ONCE }, worker));
  if (errors.length > 0) throw errors.find(error => error instanceof FencedError) ?? errors[0];
}

type Patch = (fence: number, patches: readonly SlotPatch[]) => Promise<void>;

/** Called after an earlier generation of a stream was removed along with its undelivered events. */
export type OnLoss = (part: Part, left: PartDrain) => void;

/** @param patch writes to the hashes of the cluster, fenced */
export function createPartWriter(redis: RedisClient, patch: Patch, onLoss: OnLoss = () => {}): PartWriter {
  const gate: Gate = createGate(redis);
  const apply = createApply(redis, gate);
  const listed = createListedParts(redis, patch);
  const removal = createPartRemoval(redis);
  const drain = createDrain(redis);
  const space = createSpace(redis);

  async function applyChanges(part: Part, fence: number, changes: PartChanges, nowMs: number): Promise<void> {
    const { tail } = await apply(part, fence, changes.before);
    // The account needs the stored bytes of the part before other parts can use the rest of the limit.
    if (changes.before.some(isLimiting)) {
      await space.register(part, nowMs);
    }
    const activations = changes.activations.map(change => {
      const begins = change.kind === 'on' && changes.added.has(change.slot) && tail !== undefined;
      return begins ? { ...change, since: tail } : change;
    });
    await apply(part, fence, activations);
    await apply(part, fence, changes.after);
  }

  async function remove(part: Part, fence: number, nowMs: number): Promise<void> {
    await removal.settle(part, nowMs);
    await removal.remove(part, fence, nowMs);
  }

  /** Removes the remains of other generations. Returns whether there was anything to remove. */
  async function removeFormer(stored: StoredPart, part: Part, fence: number, nowMs: number): Promise<boolean> {
    const former = formerGenerations(stored, part);
    for (const gen of former) {
      const earlier = { ...part, gen };
      const left = await drain.read(earlier);
      await remove(earlier, fence, nowMs);
      if (left.unrouted + left.open > 0) onLoss(earlier, left);
    }
    return former.length > 0;
  }

  /**
   * Reads a part, but only for this generation. If it is new, it is started. After this, an earlier leader is not able
   * to write to it any more.
   */
  async function open(part: Part, fence: number, nowMs: number): Promise<StoredPart> {
    await patch(fence, [{ meta: partKeys(part).meta, ops: [] }]);
    let stored = await readPart(redis, part);
    if (await removeFormer(stored, part, fence, nowMs)) stored = await readPart(redis, part);
    if (stored.meta.gen === part.gen) return stored;
    await apply(part, fence, await beginAgain(redis, part, nowMs));
    return { ...stored, meta: { gen: part.gen } };
  }

  return {
    async write({ fence, have, want, isKnown, openKeys, nowMs }) {
      const had = await inSlices(wantedParts(isKnown ? { ...have, ...withoutSame(have, want) } : have));
      const has = await inSlices(wantedParts(isKnown ? { ...want, ...withoutSame(want, have) } : want));
      await forEach(has, async ([queue, wanted]) => {
        const { part } = wanted;
        const before = had.get(queue);
        let stored = isKnown ? before && storedAs(before) : await open(part, fence, nowMs);
        if (isKnown && stored !== undefined && (await removeFormer(stored, part, fence, nowMs))) stored = undefined;
        const changes = await inSlices(planPart(stored, wanted, openKeys, skippingSlots(before, wanted)));
        await applyChanges(part, fence, changes, nowMs);
        // List the part only after it was written, because a dispatcher that does not find the part reports that it is
        // missing.
        if (!isKnown || before?.part.gen !== part.gen) await listed.add(fence, [part]);
      });
    },
    close: createClose(redis, gate, apply),
    change: async (part, fence, changes) => (await apply(part, fence, changes)).count,
    async remove(part, fence, nowMs) {
      await remove(part, fence, nowMs);
      await listed.remove(fence, [part]);
    },
  };
}
