import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { redisClusterUrl, redisUrl } from '../../test/support/redis/shared.ts';
import { START_MS } from '../record/testing/tenant.ts';
import { connectRedis } from '../redis/client.ts';
import { HINT_PARTITIONS, hintKeys, hintPartition } from '../redis/keys.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { createLogger } from '../telemetry/log.ts';
import { createHintIndex } from './hints.ts';

onEachRedis(redis => {
  /**
   * Resets the time of the last pick because an earlier test may have used a later time, which looks like a clock that
   * was set back.
   */
  async function start() {
    const hints = createHintIndex(redis(), 's');
    const member = `ten_${randomUUID()}:run_x`;
    const partition = hintPartition(member);
    await redis().call('hdel', hintKeys('s', partition).tokens, '');
    const pick = async (nowMs: number, token: string, leaseMs = 1_000) => {
      const { members, nextMs } = await hints.pick(partition, nowMs, 10_000, leaseMs, token);
      return { picked: members.includes(member), nextMs };
    };
    onTestFinished(async () => {
      await redis().call('zrem', hintKeys('s', partition).due, member);
    });
    return { hints, member, partition, pick };
  }

  test('a lowered hint is picked once, and again when its lease has expired', async () => {
    const { hints, member, pick } = await start();
    await hints.lower([{ member, dueMs: START_MS }]);
    expect((await pick(START_MS - 1, 't0')).picked).toBe(false);
    expect((await pick(START_MS, 't1')).picked).toBe(true);
    expect((await pick(START_MS + 999, 't2')).picked).toBe(false);
    expect((await pick(START_MS + 1_000, 't3')).picked).toBe(true);
    // The lease of the first worker is over, so it can no longer make any changes.
    expect(await hints.settle(hintPartition(member), member, 't1', null)).toBe(false);
    expect(await hints.settle(hintPartition(member), member, 't3', null)).toBe(true);
    expect((await pick(START_MS + 9_000_000, 't4')).picked).toBe(false);
  });

  test('settle has no effect if the hint was lowered in the meantime', async () => {
    const { hints, member, pick } = await start();
    for (const loweredTo of [START_MS - 5, START_MS, START_MS + 999, START_MS + 5_000]) {
      await hints.lower([{ member, dueMs: START_MS }]);
      await pick(START_MS, 't');
      await hints.lower([{ member, dueMs: loweredTo }]);
      expect(await hints.settle(hintPartition(member), member, 't', null)).toBe(false);
      expect((await pick(START_MS + 5_000, 'u')).picked).toBe(true);
      expect(await hints.settle(hintPartition(member), member, 'u', null)).toBe(true);
    }
  });

  test('a hint is due at the time set by a former holder, even if a successor settles it', async () => {
    const { hints, member, partition, pick } = await start();
    await hints.lower([{ member, dueMs: START_MS }]);
    await pick(START_MS, 'former');
    await hints.lower([{ member, dueMs: START_MS }]);
    await pick(START_MS, 'successor', 20_000);
    expect(await hints.settle(partition, member, 'former', START_MS + 5_000)).toBe(false);
    expect(await hints.settle(partition, member, 'successor', START_MS + 25_000)).toBe(false);
    expect((await pick(START_MS + 4_999, 'early')).picked).toBe(false);
    expect((await pick(START_MS + 5_000, 'last')).picked).toBe(true);
    // This also applies to a removed hint, but never later than the time of another process.
    expect(await hints.settle(partition, member, 'last', null)).toBe(true);
    expect(await hints.settle(partition, member, 'former', START_MS + 9_000)).toBe(false);
    expect(await hints.settle(partition, member, 'former', START_MS + 99_000)).toBe(false);
    expect((await pick(START_MS + 9_000, 'end')).picked).toBe(true);
  });

  test('settling increases the time to the next one; lowering uses the earlier time', async () => {
    const { hints, member, pick } = await start();
    await hints.lower([{ member, dueMs: START_MS }]);
    await pick(START_MS, 't1');
    expect(await hints.settle(hintPartition(member), member, 't1', START_MS + 60_000)).toBe(true);
    await hints.lower([{ member, dueMs: START_MS + 90_000 }]);
    expect((await pick(START_MS + 59_999, 't2')).picked).toBe(false);
    await hints.lower([{ member, dueMs: START_MS + 30_000 }]);
    expect((await pick(START_MS + 30_000, 't3')).picked).toBe(true);
    await hints.settle(hintPartition(member), member, 't3', null);
  });

  test('returns the next time in the partition', async () => {
    const { hints, member, pick } = await start();
    await hints.lower([{ member, dueMs: 5 }]);
    expect((await pick(1, 't')).nextMs).toBe(5);
    await pick(5, 't');
    await hints.settle(hintPartition(member), member, 't', null);
  });

  test('notifies listeners of lowered hints, and first of messages that may have been lost', async () => {
    const { hints, member, partition, pick } = await start();
    const listener = await connectRedis(
      redis().cluster ? redisClusterUrl() : redisUrl(),
      createLogger({ level: 'silent' }),
    );
    onTestFinished(() => listener.close());
    const heard = new Map<number, number[]>();
    const named: string[][] = [];
    let all = () => {};
    let waiting: () => boolean = () => true;
    createHintIndex(listener, 's').listen((p, ms, members) => {
      if (members.includes(member)) named.push([...members]);
      heard.set(p, [...(heard.get(p) ?? []), ms]);
      if (waiting()) all();
    });
    const until = (condition: () => boolean) =>
      new Promise<void>(resolve => {
        waiting = condition;
        all = resolve;
        if (condition()) resolve();
      });
    await until(() => heard.size === HINT_PARTITIONS);
    expect([...heard.values()].every(([first]) => first === 0)).toBe(true);
    await hints.lower([{ member, dueMs: START_MS - 77 }]);
    await until(() => heard.get(partition)?.includes(START_MS - 77) === true);
    // If the hint is not lowered, nothing is written, but the current worker is notified.
    await hints.lower([{ member, dueMs: START_MS - 76 }]);
    await until(() => heard.get(partition)?.includes(START_MS - 76) === true);
    expect((await pick(START_MS - 77, 't')).picked).toBe(true);
    expect(named).toEqual([[member], [member]]);
    // If there are too many members, only the time is included.
    const samePartition = Array.from({ length: 5_000 }, (_, i) => `${member}${i}`)
      .filter(each => hintPartition(each) === partition)
      .slice(0, 9);
    expect(samePartition).toHaveLength(9);
    await hints.lower(samePartition.map(each => ({ member: each, dueMs: START_MS - 78 })));
    await until(() => heard.get(partition)?.includes(START_MS - 78) === true);
    expect(named).toHaveLength(2);
    for (const each of (await hints.pick(partition, START_MS - 78, 100, 1_000, 'u')).members) {
      await hints.settle(partition, each, 'u', null);
    }
    await pick(START_MS, 't');
    await hints.settle(hintPartition(member), member, 't', null);
  });
});
