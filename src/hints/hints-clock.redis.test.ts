import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { START_MS } from '../record/testing/tenant.ts';
import { hintKeys, hintPartition } from '../redis/keys.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { createHintIndex } from './hints.ts';

const HOUR_MS = 3_600_000;

// Tests hints after a clock was set back.
onEachRedis(redis => {
  function start() {
    const hints = createHintIndex(redis(), 'a');
    const member = `acc_${randomUUID()}`;
    const partition = hintPartition(member);
    onTestFinished(async () => {
      const { due, tokens } = hintKeys('a', partition);
      await redis().call('zrem', due, member);
      await redis().call('hdel', tokens, member, '');
    });
    const pick = async (nowMs: number, token: string) =>
      (await hints.pick(partition, nowMs, 10_000, 10_000, token)).members.includes(member);
    return { hints, member, pick };
  }

  test('picks the hints of a crashed process immediately after the clock was set back', async () => {
    const { hints, member, pick } = start();
    await hints.lower([{ member, dueMs: START_MS }]);
    expect(await pick(START_MS, 't1')).toBe(true);
    expect(await pick(START_MS - HOUR_MS, 't2')).toBe(true);
    expect(await pick(START_MS - HOUR_MS, 't3')).toBe(false);
    expect(await pick(START_MS - HOUR_MS + 10_000, 't4')).toBe(true);
  });

  test('picks hints that became due by the earlier clock', async () => {
    const { hints, member, pick } = start();
    await hints.lower([{ member, dueMs: START_MS }]);
    expect(await pick(START_MS, 't1')).toBe(true);
    expect(await hints.settle(hintPartition(member), member, 't1', START_MS + 250)).toBe(true);
    expect(await pick(START_MS - HOUR_MS, 't2')).toBe(true);
  });

  test('hints are leased to one process at a time if clocks differ slightly', async () => {
    const { hints, member, pick } = start();
    await hints.lower([{ member, dueMs: START_MS - 1_000 }]);
    expect(await pick(START_MS, 't1')).toBe(true);
    expect(await pick(START_MS - 1_000, 't2')).toBe(false);
  });
});
