import { expect, onTestFinished, test } from 'vitest';
import { connectRedis } from '../../src/redis/client.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { monitorRedis } from '../scale/redis-monitor.ts';
import { startPart } from '../support/part/part.ts';
import { NOT_PUSHED } from '../support/part/part-inbox.ts';
import { startRedis } from '../support/redis/server.ts';

const MANY = 2_000;
const READ_WHOLE = ['hgetall', 'hkeys', 'hvals', 'smembers'];

/** Stores, claims, and completes an event for one of `count` subscriptions. Returns the commands of the scripts. */
async function deliverOne(count: number) {
  const server = await startRedis();
  onTestFinished(server.stop);
  const redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
  onTestFinished(() => redis.close());
  const { t, d } = await startPart(redis, { a: {} }, ['k']);
  const others = Array.from({ length: count - 1 }, (_, i) => `s${i}`);
  for (let at = 0; at < others.length; at += 250) {
    const some = others.slice(at, at + 250);
    for (const name of some) await t.setRow(name, {});
    await t.change(...some.map(name => ({ kind: 'on' as const, slot: t.slot(name), groupKey: 'other' })));
  }
  await d.exchange(0, NOT_PUSHED);
  const commands: (readonly string[])[] = [];
  const close = await monitorRedis(server.url, (args, source) => {
    if (source === 'lua') commands.push(args);
  });
  await t.send('k');
  const { claims } = await d.exchange(64, NOT_PUSHED);
  expect(claims).toHaveLength(1);
  for (const claim of claims) d.end(claim);
  await d.exchange(0, NOT_PUSHED);
  expect((await t.counts('a')).slice(0, 4)).toEqual([0, 1, 0, 1]);
  // Waits for the output of all previous commands.
  await server.command('PING');
  close();
  const nameOf = (key = '') => Object.entries(t.keys).find(([, value]) => value === key)?.[0] ?? key;
  return commands.map(([command = '', key, ...args]) => ({
    call: `${command.toLowerCase()} ${nameOf(key).replace(/^\{.*\}/, '')}`,
    args: args.length,
  }));
}

test(`an event for one of ${MANY} subscriptions requires the same commands as for one of two subscriptions`, async () => {
  const [few, many] = [await deliverOne(2), await deliverOne(MANY)];
  expect(few.length).toBeGreaterThan(20);
  expect(many).toEqual(few);
  const whole = many.map(({ call }) => call).filter(call => READ_WHOLE.includes(call.split(' ')[0] as string));
  expect(new Set(whole)).toEqual(new Set(['hgetall ready']));
});
