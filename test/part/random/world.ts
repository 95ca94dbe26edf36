import { type Completion, createExchange, type Holding } from '../../../src/part/claims/exchange.ts';
import { type Claim, isAlone, type Push } from '../../../src/part/claims/message.ts';
import type { GateChange } from '../../../src/part/gate/gate.ts';
import type { SubscriptionRow } from '../../../src/part/gate/subscription-row.ts';
import { createFindSlot, type PartClient } from '../../../src/part/inbox/find-part.ts';
import { slotOf } from '../../../src/part/keys.ts';
import { createPartInboxRecovery } from '../../../src/part/owner/recovery.ts';
import type { SweepState } from '../../../src/part/sweep/due.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { createTestPart, READY_MS, row } from '../../support/part/part.ts';
import { listenTo } from '../../support/part/pushes.ts';
import { compareParts } from './compare.ts';
import { type Dump, dumpPart } from './dump.ts';
import { checkInvariants, claimableSlots } from './invariants.ts';
import { withSmallLimits } from './limits.ts';
import { hold, newReference, same } from './reference/reference.ts';
import { change, takePushed } from './reference/routing.ts';

const HOUR_MS = 3_600_000;
/** The start time, a hundred seconds before the end of both a record bucket and an hour. */
export const START_MS = 82_871 * 6 * HOUR_MS - 100_000;
export const RETENTION_MS = 60_000;
export const KEYS = ['k', 'kk', 'é:0', 'l'] as const;

/** Subscriptions, by name. */
const SUBS: Readonly<Record<string, Partial<SubscriptionRow>>> = {
  narrow: { cap: 1 },
  two: { cap: 2 },
  broad: { cap: 50 },
  unordered: { cap: 3, unordered: true },
  paced: { cap: 5, maxPerSecond: 2 },
  pulled: { cap: 8, send: 'held' },
  eighth: { cap: 4 },
  ninth: { cap: 3 },
};
export const NAMES = Object.keys(SUBS);
/** Endpoints which fail most of the time. */
export const SICK: readonly string[] = ['two', 'eighth'];

/** A dispatcher, including the data being sent to it. */
export interface Process {
  readonly name: string;
  readonly held: Map<string, Claim>;
  readonly ended: Completion[];
  readonly inbox: Push[];
  calls: number;
  /** A call that Redis may execute again later. */
  earlier: readonly [Holding, readonly Completion[], number] | undefined;
  pushed: number;
  bytes: number;
}

/** A part in Redis along with its reference, and the dispatchers working on it. */
export async function createWorld(redis: RedisClient, url: string) {
  const small: RedisClient = { ...redis, ...withSmallLimits(redis) };
  const t = createTestPart(small);
  t.clock.ms = START_MS;
  const of = newReference(START_MS);
  const pushes = await listenTo(redis, url, t.part);
  const client: PartClient = { ...redis, ...t.client };
  const findSlot = createFindSlot(client, () => t.part);
  const incs = new Map(NAMES.map(name => [name, 1]));
  const nameOf = new Map<string, string>();
  let number = 0;
  const newProcess = (): Process => ({
    name: `d${number++}`,
    held: new Map(),
    ended: [],
    inbox: [],
    calls: 0,
    earlier: undefined,
    pushed: 0,
    bytes: 0,
  });
  const processes = [newProcess(), newProcess()];
  const notes: string[] = [];

  function slot(name: string): string {
    const found = slotOf(name, `inc${incs.get(name)}`);
    nameOf.set(found, name);
    return found;
  }

  const world = {
    t,
    of,
    redis,
    client,
    incs,
    nameOf,
    processes,
    newProcess,
    dead: new Set<string>(),
    slot,
    sweepState: {} as SweepState,
    /** A description of the operation, for reading a failed history. */
    notes,
    note: (text: string) => void notes.push(text),
    inboxOf: (name: string) => ({ integration: 'int_x', sub: name, inc: `inc${incs.get(name)}` }),
    findSlot,
    exchange: createExchange(t.client),
    recovery: createPartInboxRecovery(client, findSlot),
    replays: 0,
    tests: 0,
    /** Returns the state after the last operation. */
    claimable: new Set<string>(),
    before: undefined as unknown as Dump,
    dump: () => dumpPart(redis, t.part, START_MS, t.clock.ms + 1_000),
    wait(ms: number) {
      t.clock.ms += ms;
      of.nowMs = t.clock.ms;
    },
    holdingOf: (process: Process, fields: Partial<Holding>): Holding => ({
      dispatcher: process.name,
      number: ++process.calls,
      readyMs: READY_MS,
      limit: 20,
      held: process.held.size + process.ended.length,
      holdsAlone: [...process.held.values()].some(isAlone),
      pushed: process.pushed,
      bytes: process.bytes,
      roomBytes: 4 * 2 ** 20,
      ...fields,
    }),
    /** Applies changes, and expects the number of changes that the reference returns. */
    async gate(...changes: GateChange[]): Promise<void> {
      for (let at = 0; ; at++) {
        const expected = changes.reduce((sum, each) => sum + change(of, each), 0);
        const answer = await t.gate(t.part, 1, changes);
        if (answer.answer !== 'OK') throw new Error(answer.answer);
        if (changes[0]?.kind !== 'begin') same('changes', [answer.changes, answer.tail], [expected, of.tail]);
        if (!answer.more) return;
        if (at > 1_000) throw new Error('there are always more events to unpark');
      }
    },
    /**
     * The initial group keys of a subscription. It does not use all keys because each event would then be too wide for
     * a single call.
     */
    activeKeys: (number: number) => KEYS.filter((_, i) => (i + number) % 4 > 1 || number === 0),
    rowOf: (name: string, fields: Partial<SubscriptionRow> = {}) => row({ ...SUBS[name], ...fields }),
    /** Returns the new pushes, which each process still has to receive. */
    async takePushes(): Promise<Push[]> {
      const taken = await pushes.take();
      for (const process of processes) {
        for (const push of taken) if (push.dispatcher === process.name) process.inbox.push(push);
      }
      return taken;
    },
    /** Compares the complete state with the reference after an operation with the given pushes. */
    async check(taken: readonly Push[], mayBeSilent = false): Promise<void> {
      const after = await world.dump();
      takePushed(of, taken, world.before, after);
      world.before = after;
      compareParts(of, after);
      checkInvariants(of, after);
      const before = world.claimable;
      world.claimable = claimableSlots(of, after);
      if (mayBeSilent || taken.some(({ waiting }) => waiting)) return;
      for (const each of world.claimable) {
        hold(before.has(each), () => `${each} has claimable events, but no push was sent`);
      }
    },
    close: pushes.close,
  };

  const meta = { state: 'open', maxBytes: String(2 ** 40), retentionMs: String(RETENTION_MS), ready: '1' } as const;
  await world.gate(
    { kind: 'begin' },
    { kind: 'marker' },
    { kind: 'meta', field: 'cfgv', value: 'c1' },
    ...NAMES.map(name => ({ kind: 'row' as const, slot: slot(name), row: world.rowOf(name) })),
    ...NAMES.filter(name => name !== 'pulled').map(name => ({
      kind: 'endpoint' as const,
      slot: slot(name),
      sealed: 's',
    })),
    ...NAMES.flatMap((name, i) =>
      world.activeKeys(i).map(groupKey => ({ kind: 'on' as const, slot: slot(name), groupKey })),
    ),
    ...Object.entries(meta).map(([field, value]) => ({ kind: 'meta' as const, field: field as 'ready', value })),
  );
  await world.takePushes();
  world.before = await world.dump();
  return world;
}

export type World = Awaited<ReturnType<typeof createWorld>>;
