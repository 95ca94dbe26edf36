import { expect, test } from 'vitest';
import type { Part } from '../keys.ts';
import type { WorkOfPart } from './look-at-work.ts';
import { createSurvey } from './survey.ts';

const QUIET: WorkOfPart = {
  nowMs: 1_000,
  open: 0,
  isWaiting: false,
  idleSinceMs: undefined,
  hasEvents: false,
  routing: undefined,
  expired: undefined,
};

/** A survey of parts by number, which have no work unless specified. */
function start(count: number) {
  const parts = new Map<string, string>();
  for (let number = 0; number < count; number++) parts.set(`ten_a:q:${number}`, 'gen1');
  const works = new Map<number, Partial<WorkOfPart> | 'gone' | 'silent'>();
  const looked: number[] = [];
  const clock = { ms: 1_000 };
  const survey = createSurvey({
    readParts: async () => parts,
    async look({ number }: Part) {
      looked.push(number);
      const work = works.get(number);
      if (work === 'silent') throw new Error('unavailable');
      return work === 'gone' ? undefined : { ...QUIET, nowMs: clock.ms, ...work };
    },
    random: Math.random,
  });
  return { parts, works, looked, clock, survey };
}

const NOTHING = { waiting: 0, due: 0, overdueMs: 0 };

test('there is no work without parts', async () => {
  const { survey } = start(0);
  expect(await survey()).toEqual({ openDeliveries: 0, queues: NOTHING, parts: NOTHING });
});

test('adds up what it has read, including earlier results', async () => {
  const { survey, works, looked } = start(100);
  for (let number = 0; number < 100; number++) works.set(number, { open: 3, isWaiting: true, hasEvents: true });
  expect(await survey()).toMatchObject({ openDeliveries: 300, parts: { waiting: 100 }, queues: { waiting: 100 } });
  expect(looked).toHaveLength(64);
  works.clear();
  await survey();
  expect(new Set(looked).size).toBe(100);
  expect(looked).toHaveLength(128);
  expect(await survey()).toMatchObject({ openDeliveries: 0, parts: { waiting: 0 }, queues: { waiting: 0 } });
});

test('checks overdue parts each time, regardless of their number', async () => {
  const { survey, works, clock } = start(1_000);
  works.set(7, { isWaiting: true, idleSinceMs: 500 });
  const found = async () => (await survey()).parts.overdueMs;
  let looks = 0;
  while ((await found()) === 0) expect(++looks).toBeLessThan(17);
  for (clock.ms = 30_000; clock.ms < 40_000; clock.ms += 1_000) expect(await found()).toBe(clock.ms - 500);
  works.clear();
  expect(await survey()).toMatchObject({ parts: NOTHING });
});

test('many overdue parts do not prevent the others from being checked', async () => {
  const { survey, works, looked } = start(300);
  for (let number = 0; number < 200; number++) works.set(number, { isWaiting: true, idleSinceMs: 500 });
  for (let i = 0; i < 10; i++) await survey();
  expect(new Set(looked).size).toBe(300);
});

test.each([
  ['routing', (at: number) => ({ routing: `gates ${at}` })],
  ['removal', (at: number) => ({ hasEvents: true, expired: { id: `${at}-0`, sinceMs: 100 } })],
] as const)('%s is overdue if it has not moved since the last check', async (_name, workAt) => {
  const { survey, works, clock } = start(3);
  works.set(1, workAt(1));
  expect((await survey()).queues).toEqual({ waiting: 1, due: 0, overdueMs: 0 });
  clock.ms += 15_000;
  expect((await survey()).queues).toEqual({ waiting: 1, due: 1, overdueMs: 15_000 });
  clock.ms += 15_000;
  works.set(1, workAt(2));
  expect((await survey()).queues).toEqual({ waiting: 1, due: 0, overdueMs: 0 });
  clock.ms += 15_000;
  expect((await survey()).queues).toEqual({ waiting: 1, due: 1, overdueMs: 15_000 });
});

test('claims without a dispatcher are overdue since they were found', async () => {
  const { survey, works, clock } = start(1);
  works.set(0, { isWaiting: true, idleSinceMs: 0 });
  expect((await survey()).parts).toEqual({ waiting: 1, due: 1, overdueMs: 0 });
  clock.ms += 15_000;
  expect((await survey()).parts).toEqual({ waiting: 1, due: 1, overdueMs: 15_000 });
});

test('forgets removed parts, and starts again with another generation', async () => {
  const { survey, works, parts, clock } = start(2);
  works.set(0, { open: 5, routing: 'gates 1' }).set(1, { open: 7 });
  expect(await survey()).toMatchObject({ openDeliveries: 12 });
  works.set(1, 'gone');
  // One part has five, and the other one is unknown.
  expect(await survey()).toMatchObject({ openDeliveries: 10 });
  parts.delete('ten_a:q:1');
  parts.set('ten_a:q:0', 'gen2');
  clock.ms += 15_000;
  expect(await survey()).toEqual({ openDeliveries: 5, queues: { waiting: 1, due: 0, overdueMs: 0 }, parts: NOTHING });
});

test('continues if some parts do not respond, and rejects if none of them do', async () => {
  const { survey, works } = start(2);
  works.set(0, { open: 5 }).set(1, { open: 7 });
  await survey();
  works.set(0, 'silent').set(1, { open: 8 });
  expect(await survey()).toMatchObject({ openDeliveries: 13 });
  works.set(1, 'silent');
  await expect(survey()).rejects.toThrow('no part answers');
});
