import { expect, onTestFinished, test } from 'vitest';
import { connectRedis } from '../../src/redis/client.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { monitorRedis } from '../scale/redis-monitor.ts';
import { row, startPart } from '../support/part/part.ts';
import { NOT_PUSHED } from '../support/part/part-inbox.ts';
import { startRedis } from '../support/redis/server.ts';

const MANY = 2_000;
const READ_WHOLE = ['hgetall', 'hkeys', 'hvals', 'smembers'];

/**
 * Stores, claims, and completes an event for one of `count` subscriptions. Then the others are paused, and the one
 * continues after a pause. Returns the commands of the scripts of both.
 */
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
  let commands: (readonly string[])[] = [];
  const close = await monitorRedis(server.url, (args, source) => {
    if (source === 'lua') commands.push(args);
  });
  await t.send('k');
  const { claims } = await d.exchange(64, NOT_PUSHED);
  expect(claims).toHaveLength(1);
  for (const claim of claims) d.end(claim);
  await d.exchange(0, NOT_PUSHED);
  expect((await t.counts('a')).slice(0, 4)).toEqual([0, 1, 0, 1]);
  const nameOf = (key = '') => Object.entries(t.keys).find(([, value]) => value === key)?.[0] ?? key;
  async function takeCommands() {
    // Waits for the output of all previous commands.
    await server.command('PING');
    const taken = commands.map(([command = '', key, ...args]) => ({
      call: `${command.toLowerCase()} ${nameOf(key).replace(/^\{.*\}/, '')}`,
      args: args.length,
    }));
    commands = [];
    return taken;
  }
  const delivery = await takeCommands();
  const paused = ['a', ...others].map(name => ({
    kind: 'row' as const,
    slot: t.slot(name),
    row: row({ route: 'paused' }),
  }));
  for (let at = 0; at < paused.length; at += 250) await t.change(...paused.slice(at, at + 250));
  for (let batch = 0; batch < 3; batch++) await t.send(...Array<string>(64).fill('k'));
  await t.setRow('a', {});
  expect(await t.advance()).toMatchObject({ references: 64, more: true });
  await takeCommands();
  expect(await t.advance()).toMatchObject({ references: 64, more: true });
  const step = await takeCommands();
  close();
  expect(await t.advanceAll()).toBe(64);
  return { delivery, step };
}

const wholeIn = (commands: readonly { readonly call: string }[]) =>
  new Set(commands.map(({ call }) => call).filter(call => READ_WHOLE.includes(call.split(' ')[0] as string)));

test(`an event for one of ${MANY} subscriptions requires the same commands as for one of two subscriptions`, async () => {
  const [few, many] = [await deliverOne(2), await deliverOne(MANY)];
  expect(few.delivery.length).toBeGreaterThan(20);
  expect(many.delivery).toEqual(few.delivery);
  expect(wholeIn(many.delivery)).toEqual(new Set(['hgetall ready']));
  // A step of catching up.
  expect(many.step).toEqual(few.step);
  expect(wholeIn(many.step)).toEqual(new Set());
});
