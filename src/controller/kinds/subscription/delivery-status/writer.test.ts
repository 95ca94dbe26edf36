import { expect, test } from 'vitest';
import { createManualClock } from '../../../../../test/support/manual-clock.ts';
import { createDeliveryWriter } from './writer.ts';

const at = (key: string, uid = `uid of ${key}`) => ({ key, uid });
const waits = (backlog: string) => ({ deadLetters: false, backlog });

function start() {
  const clock = createManualClock();
  const written: string[] = [];
  const writer = createDeliveryWriter({
    clock,
    write: key => written.push(`${clock.nowMs()} ${key} ${writer.shownOf(at(key))?.backlog}`),
  });
  writer.begin();
  return { clock, written, writer };
}

test('a single change is written immediately', async () => {
  const { clock, written, writer } = start();
  writer.offer(at('a'), waits('1+'));
  await clock.advance(0);
  expect(written).toEqual(['0 a 1+']);
  expect(clock.pendingTimers()).toBe(0);
});

test('200 concurrent changes are written at five per second, starting with the oldest change, and none is lost', async () => {
  const { clock, written, writer } = start();
  for (let n = 0; n < 200; n++) writer.offer(at(`s${n}`), waits('1+'));
  expect(writer.waiting()).toBe(200);
  await clock.advance(60_000);
  expect(written).toEqual(Array.from({ length: 200 }, (_, n) => `${n * 200} s${n} 1+`));
  expect(writer.waiting()).toBe(0);
});

test('the latest value is written, and keeps the place of the first change', async () => {
  const { clock, written, writer } = start();
  for (const key of ['a', 'b', 'c']) writer.offer(at(key), waits('1+'));
  writer.offer(at('b'), waits('100+'));
  await clock.advance(1_000);
  expect(written).toEqual(['0 a 1+', '200 b 100+', '400 c 1+']);
});

test('does not write a change that was undone before its turn', async () => {
  const { clock, written, writer } = start();
  for (const key of ['a', 'b', 'c']) writer.offer(at(key), waits('1+'));
  writer.withdraw('b');
  await clock.advance(1_000);
  expect(written).toEqual(['0 a 1+', '200 c 1+']);
});

test('writes a subscription that changes often every ten seconds, without delaying others', async () => {
  const { clock, written, writer } = start();
  for (let n = 0; n <= 250; n++) {
    writer.offer(at('flaps'), waits(n % 2 === 0 ? '1+' : '10+'));
    if (n === 20) writer.offer(at('calm'), waits('1+'));
    await clock.advance(100);
  }
  await clock.advance(60_000);
  expect(written.filter(line => line.includes('flaps')).map(line => line.split(' ')[0])).toEqual([
    '0',
    '10000',
    '20000',
    '30000',
  ]);
  expect(written.at(-1)).toBe('30000 flaps 1+');
  expect(written).toContain('2000 calm 1+');
});

test('ten thousand subscriptions that change all the time share the turns', async () => {
  const { clock, written, writer } = start();
  for (let round = 0; round < 5; round++) {
    for (let n = 0; n < 10_000; n++) writer.offer(at(`s${n}`), waits(`1${'0'.repeat(round)}+`));
    await clock.advance(1_000);
  }
  expect(written).toHaveLength(26);
  expect(new Set(written.map(line => line.split(' ')[1])).size).toBe(26);
  expect(writer.waiting()).toBe(9_995);
});

test('a recreated Subscription does not show the state of the previous one', async () => {
  const { clock, writer } = start();
  writer.offer(at('a', 'old'), waits('1+'));
  await clock.advance(0);
  expect(writer.shownOf(at('a', 'old'))).toEqual(waits('1+'));
  expect(writer.shownOf(at('a', 'new'))).toBeUndefined();
});

test('writes nothing outside of a term or from an earlier term', async () => {
  const { clock, written, writer } = start();
  writer.offer(at('a'), waits('1+'));
  writer.offer(at('b'), waits('1+'));
  await clock.advance(0);
  writer.end();
  writer.offer(at('c'), waits('1+'));
  await clock.advance(60_000);
  expect(written).toEqual(['0 a 1+']);
  writer.begin();
  expect(writer.shownOf(at('a'))).toBeUndefined();
  await clock.advance(60_000);
  expect(written).toHaveLength(1);
});

test('removes the state of deleted subscriptions', async () => {
  const { clock, written, writer } = start();
  for (const key of ['a', 'b', 'c']) writer.offer(at(key), waits('1+'));
  await clock.advance(0);
  writer.prune(key => key === 'c');
  expect(writer.waiting()).toBe(1);
  expect(writer.shownOf(at('a'))).toBeUndefined();
  await clock.advance(1_000);
  expect(written).toEqual(['0 a 1+', '200 c 1+']);
});

test('a workspace with thousands of changes does not delay the others', async () => {
  const { clock, written, writer } = start();
  for (let n = 0; n < 5_000; n++) writer.offer(at(`large/s${n}`), waits('1+'));
  await clock.advance(0);
  for (const key of ['small/a', 'small/b', 'other/a']) writer.offer(at(key), waits('1+'));
  await clock.advance(1_000);
  expect(written.map(line => line.split(' ')[1])).toEqual([
    'large/s0',
    'large/s1',
    'small/a',
    'other/a',
    'large/s2',
    'small/b',
  ]);
  expect(writer.waiting()).toBe(4_997);
});
