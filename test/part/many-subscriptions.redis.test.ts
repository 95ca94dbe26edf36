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
 * continues after a pause. Finally, the others continue from up to five positions. Returns the commands of the scripts.
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
  expect(await t.advanceAll()).toBe(64);
  await takeCommands();
  // All others are paused.
  expect(await t.advance()).toMatchObject({ events: 0, more: false });
  const idle = await takeCommands();
  await t.setRow('a', { route: 'paused' });
  await t.send('k');
  await t.setRow('a', {});
  await takeCommands();
  expect(await t.advance()).toMatchObject({ references: 1, more: false });
  const resumed = await takeCommands();
  await t.send('other');
  await takeCommands();
  expect(await t.advanceAll()).toBe(0);
  const passed = await takeCommands();
  const apart = others.slice(0, 5);
  const resume = (names: readonly string[]) =>
    t.change(...names.map(name => ({ kind: 'row' as const, slot: t.slot(name), row: row() })));
  await resume(apart);
  await t.advanceAll();
  for (const name of apart) {
    await t.setRow(name, { route: 'paused' });
    await t.send('k');
  }
  await resume(apart);
  await takeCommands();
  for (let left = apart.length; left > 0; left--) {
    expect(await t.advance()).toMatchObject({ answer: 'OK', more: left > 1 });
  }
  const inTurn = await takeCommands();
  close();
  for (let at = 0; at < others.length; at += 250) await resume(others.slice(at, at + 250));
  await t.advanceAll();
  expect(await t.hash('positions')).toEqual({});
  return { delivery, step, idle, resumed, passed, inTurn };
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
  // There is nothing to do.
  expect(many.idle.length).toBeLessThan(10);
  expect(wholeIn(many.idle)).toEqual(new Set());
  expect(many.resumed).toEqual(few.resumed);
  expect(wholeIn(many.resumed)).toEqual(new Set());
  // Of the paused subscriptions of a group key, only the rows are read.
  const readIn = (name: string) =>
    many.passed.filter(({ call }) => call === `hmget ${name}`).reduce((sum, { args }) => sum + args, 0);
  expect(readIn('subs')).toBeGreaterThan(MANY / 2);
  expect([readIn('counts'), readIn('positions') < MANY / 8]).toEqual([0, true]);
  // Subscriptions at different positions are only searched for once.
  expect(many.inTurn.filter(({ call }) => call === 'hgetall positions')).toHaveLength(1);
});
