import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createPartInbox, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { createReplays } from '../../accounts/replays.ts';
import { createHintIndex, type Hint } from '../../hints/hints.ts';
import { createPartReplayInboxes } from '../../part/owner/replays.ts';
import { createSweep } from '../../part/sweep/sweep.ts';
import { START_MS } from '../../record/testing/tenant.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { accountKeys, hintKeys, hintPartition } from '../../redis/keys.ts';
import { createLogger } from '../../telemetry/log.ts';
import { type Actor, type Choice, everySchedule, interleave, type Step } from '../testing/interleaving.ts';
import { createReplaySweep } from './replay-sweep.ts';

const DEAD = { outcome: 'dead' } as const;
const RETENTION_MS = 86_400_000;
const DEAD_ONES = { fromMs: START_MS - 1_000, toMs: START_MS + 86_400_000, states: ['dead'] as const };
const WRITES = new Set(['debit', 'settle-replay']);
const FAULTS: Actor['faults'] = ['answer lost', 'not done', 'crash'];
/** With SCHEDULES=all (`make test-model`), every fault is combined with every pause. */
const SOME = process.env.SCHEDULES === 'all' ? {} : { pairwise: true, oneIn: 3 };

let client: RedisClient | undefined;
const redis = () => client as RedisClient;
beforeAll(async () => {
  client = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => client?.close());

/** The replays of an actor. Each write is a step. Uses a separate clock. */
function replaysOf({ client: part, findSlot }: PartInbox, atMs: number, step: Step, lowered: Hint[] = []) {
  const stepping: RedisClient = {
    ...redis(),
    run: (name, keys, args) =>
      WRITES.has(name) ? step(name, () => redis().run(name, keys, args)) : redis().run(name, keys, args),
  };
  const inboxes = createPartReplayInboxes(part, findSlot);
  return createReplays({
    redis: stepping,
    nowMs: () => atMs,
    lowerAccounts: hints => step('remember account', async () => void lowered.push(...hints)),
    inboxes: { ...inboxes, enqueue: chunk => step('enqueue', () => inboxes.enqueue(chunk)) },
    chunkEvents: 2,
    reclaimTokens: async () => false,
  });
}

const keepFor = ({ part }: PartInbox, ms: number) =>
  part.change({ kind: 'meta', field: 'retentionMs', value: String(ms) });

/** Stores three dead letters of one group key. The first event is 1 s older. */
async function start(): Promise<PartInbox> {
  const inbox = await createPartInbox(redis(), {}, ['a']);
  await keepFor(inbox, RETENTION_MS);
  await inbox.setAccount('Metered', 0);
  await inbox.publish(['a']);
  inbox.t.clock.ms += 1_000;
  await inbox.publish(['a', 'a']);
  await inbox.drain(DEAD);
  return inbox;
}

function starter(inbox: PartInbox, name: string, lowered: Hint[]): Actor {
  return {
    name,
    faults: FAULTS,
    run: async step => {
      const replays = replaysOf(inbox, inbox.t.nowMs(), step, lowered);
      // A caller repeats its call if it failed.
      for (let tries = 0; tries < 2; tries++) {
        try {
          await replays.start(inbox.payer, 'r', inbox.inbox, DEAD_ONES);
          return;
        } catch (error) {
          expect(['answer lost', 'not done']).toContain((error as Error).message);
        }
      }
    },
  };
}

function sweeper(inbox: PartInbox): Actor {
  const run = async (step: Step) => {
    // Otherwise, the sweep would run before any other step.
    await step('looks', async () => {});
    await replaysOf(inbox, START_MS + 60_000, step).sweep(inbox.payer);
  };
  return { name: 'sweep', faults: ['crash'], run };
}

/** Runs retention, which removes the first event in slices. */
const retention = (inbox: PartInbox): Actor => ({
  name: 'retention',
  faults: [],
  run: async step => {
    await keepFor(inbox, 500);
    const sweep = createSweep(inbox.client);
    for (let events = 0; events === 0; ) {
      const swept = await step('removes', () => sweep(inbox.part.part, {}));
      if (swept.answer !== 'OK') throw new Error(swept.answer);
      events = swept.events;
    }
    await keepFor(inbox, RETENTION_MS);
  },
});

/**
 * Completes everything. Expects that the charged events are those that were added to the inbox, and that they were
 * delivered once and in order.
 */
async function check(inbox: PartInbox, lowered: readonly Hint[], sent: string[]): Promise<void> {
  const direct: Step = (_label, call) => call();
  const a = accountKeys(inbox.payer);
  const charged = (await redis().call('exists', a.replay('int_x/r'))) === 1;
  if (charged) expect(lowered.some(({ member }) => member === inbox.payer)).toBe(true);
  expect(await replaysOf(inbox, START_MS + 120_000, direct).sweep(inbox.payer)).toBe(null);
  const intent = await redis().readHash(a.replay('int_x/r'));
  inbox.t.clock.ms = START_MS + 120_000;
  const { replayed = 0, expired = 0 } = await inbox.count();
  expect(await inbox.usedTokens()).toBe(replayed);
  expect(intent.state).toBe(charged ? 'done' : undefined);
  expect(Number(intent.taken ?? 0)).toBe(replayed);
  if (charged) expect(replayed).toBeGreaterThanOrEqual(2);
  sent.push(...(await inbox.drain()).map(([, ref]) => ref));
  expect(sent).toEqual([...new Set(sent)].toSorted());
  expect(sent).toHaveLength(replayed - expired);
}

async function run(
  choose: (options: readonly Choice[], last: string) => Choice,
  cast: (inbox: PartInbox, lowered: Hint[], sent: string[]) => readonly Actor[],
): Promise<void> {
  const inbox = await start();
  const lowered: Hint[] = [];
  const sent: string[] = [];
  const trace = await interleave(cast(inbox, lowered, sent), choose);
  try {
    // All failures are caused by a fault.
    expect(trace.filter(line => line.includes(' ends: '))).toEqual([]);
    await check(inbox, lowered, sent);
  } catch (error) {
    throw new Error(trace.join('\n'), { cause: error });
  }
}

describe('a replay, for each order of calls', () => {
  test('completes if any process stops, with the sweep and retention', { timeout: 120_000 }, async () => {
    const runs = await everySchedule({ preemptions: 1, faults: 1, ...SOME }, choose =>
      run(choose, (inbox, lowered) => [starter(inbox, 'one', lowered), sweeper(inbox), retention(inbox)]),
    );
    expect(runs).toBeGreaterThan(100);
  });

  test('completes if two callers start it at the same time with the same id', { timeout: 120_000 }, async () => {
    const runs = await everySchedule({ preemptions: 1, faults: 1, ...SOME }, choose =>
      run(choose, (inbox, lowered) => [starter(inbox, 'one', lowered), starter(inbox, 'two', lowered)]),
    );
    expect(runs).toBeGreaterThan(100);
  });

  test('completes while the dispatcher is sending events', { timeout: 120_000 }, async () => {
    const runs = await everySchedule({ preemptions: 2, faults: 0 }, choose =>
      run(choose, (inbox, lowered, sent) => {
        const send = async () => {
          inbox.t.clock.ms = START_MS + 120_000;
          sent.push(...(await inbox.drain()).map(([, ref]) => ref));
        };
        const dispatcher: Actor = {
          name: 'dispatcher',
          faults: [],
          run: async step => {
            for (let times = 0; times < 3; times++) await step('sends', send);
          },
        };
        return [starter(inbox, 'one', lowered), sweeper(inbox), dispatcher];
      }),
    );
    expect(runs).toBeGreaterThan(100);
  });
});

test('completes in the process that sweeps after it was charged', async () => {
  const inbox = await start();
  const hints = createHintIndex(redis(), 'a');
  const dies: Step = async (label, call) => {
    if (label === 'enqueue') throw new Error('died');
    return call();
  };
  const replays = replaysOf(inbox, START_MS, dies);
  await expect(replays.start(inbox.payer, 'r', inbox.inbox, DEAD_ONES)).rejects.toThrow('died');
  await hints.lower([{ member: inbox.payer, dueMs: START_MS + 30_000 }]);
  const direct: Step = (_label, call) => call();
  const sweep = createReplaySweep({
    replays: replaysOf(inbox, START_MS + 30_000, direct),
    hints,
    nowMs: () => START_MS + 30_000,
    log: createLogger({ level: 'silent' }),
  });
  sweep.start();
  const { due } = hintKeys('a', hintPartition(inbox.payer));
  await vi.waitFor(async () => expect(await redis().call('zscore', due, inbox.payer)).toBe(null), { timeout: 20_000 });
  await sweep.stop();
  expect(await inbox.usedTokens()).toBe(3);
  inbox.t.clock.ms = START_MS + 30_000;
  expect(await inbox.drain()).toHaveLength(3);
});
