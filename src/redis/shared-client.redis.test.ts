import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { NamedScript } from './named-scripts.ts';
import { shareTime } from './shared-client.ts';
import { onEachRedis } from './testing/each-redis.ts';

const script = (body: string): NamedScript => ({
  name: 'work',
  source: `#!lua\n${body}\n`,
  keys: ['meta'],
  listedKeys: undefined,
  args: ['text'],
  takesMore: false,
});

onEachRedis(redis => {
  function start() {
    const key = `{q:ten_${randomBytes(4).toString('hex')}:orders:0}:meta`;
    const turns: string[] = [];
    const took: (number | undefined)[] = [];
    const client = shareTime(redis(), async (master, kind) => {
      turns.push(`${kind} ${master === redis().masterOf(key)}`);
      return micros => took.push(micros);
    });
    const run = (body: string, text = 'x') => client.runNamed(script(body), { keys: { meta: key }, args: { text } });
    return { key, client, turns, took, run };
  }

  test('scripts have the same replies, and Redis measures their time', async () => {
    const { run, turns, took } = start();
    expect(await run('return { "OK", 1, { ARGV[1] }, false }', 'y')).toEqual(['OK', 1, ['y'], null]);
    expect(await run('return 7 -- seven')).toBe(7);
    expect(await run('if ARGV[1] == "x" then return "early" end return "late"')).toBe('early');
    expect(await run('local unused = 1')).toBeNull();
    const busy =
      'local from = redis.call("TIME") local now repeat now = redis.call("TIME") until (now[1] - from[1]) * 1000000 + now[2] - from[2] >= 20000 return 1';
    await run(busy);
    expect(turns).toEqual(Array.from({ length: 5 }, () => 'work true'));
    expect(took.at(-1)).toBeGreaterThanOrEqual(20_000);
    expect(took.at(-1)).toBeLessThan(10_000_000);
    for (const micros of took.slice(0, 4)) expect(micros).toBeGreaterThanOrEqual(0);
  });

  test('a failed script results in an error and ends its turn', async () => {
    const { run, took } = start();
    await expect(run('return redis.call("HGET", KEYS[1])')).rejects.toThrow('ERR');
    expect(took).toEqual([undefined]);
  });

  test('commands take a fixed time, and calls without a limit are not measured', async () => {
    const { key, client, took } = start();
    await client.call('hset', key, 'field', 'value');
    expect(await client.call('hget', key, 'field')).toBe('value');
    expect(await client.readHash(key)).toEqual({ field: 'value' });
    expect(took).toEqual([20, 20, 20]);
    const free = shareTime(redis(), () => undefined);
    const reply = await free.runNamedBuffers(script('return ARGV[1]'), { keys: { meta: key }, args: { text: 'x' } });
    expect(reply).toEqual(Buffer.from('x'));
    await free.call('del', key);
  });

  test('replies with Buffers are not changed', async () => {
    const { key, client } = start();
    const text = Buffer.from([0, 255, 10]);
    const reply = await client.runNamedBuffers(script('return { "OK", ARGV[1], 5 }'), {
      keys: { meta: key },
      args: { text },
    });
    expect(reply).toEqual([Buffer.from('OK'), text, 5]);
  });
});
