import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { redisClusterUrl, redisUrl } from '../../test/support/redis/shared.ts';
import { parseRedisUrl } from './connection/redis-url.ts';
import { createEvaluation } from './evaluation.ts';

const KEYS = Array.from({ length: 300 }, (_, i) => `none:${i}`);

test.each([
  ['the server', 1, () => new Redis(redisUrl())],
  ['each node of a Cluster', 3, () => new Cluster([...parseRedisUrl(redisClusterUrl()).nodes])],
] as const)('if many calls use an unknown script, its text is sent once to %s', async (_to, masters, connect) => {
  const redis = connect();
  onTestFinished(() => redis.disconnect());
  await redis.call('exists', 'none');
  const evaluate = createEvaluation({ redis, replicas: undefined });
  const send = vi.spyOn(redis as Redis, 'call');
  const source = `-- ${randomUUID()}\nreturn {KEYS[1], ARGV[1]}`;
  const callAll = () =>
    Promise.all(KEYS.map((key, i) => evaluate({ source, keys: [key], args: [String(i)], buffers: false })));
  const replies = KEYS.map((key, i) => [key, String(i)]);
  expect(await callAll()).toEqual(replies);
  const texts = () => send.mock.calls.filter(([command]) => command === 'eval').length;
  expect(texts()).toBe(masters);
  expect(await callAll()).toEqual(replies);
  expect(texts()).toBe(masters);
});

test('a call that sends the text of a script and fails does not affect the calls that wait for it', async () => {
  const redis = new Redis(redisUrl());
  onTestFinished(() => redis.disconnect());
  const evaluate = createEvaluation({ redis, replicas: undefined });
  const source = `-- ${randomUUID()}\nif ARGV[1] == '0' then return redis.error_reply('ODD first') end return ARGV[1]`;
  const calls = ['0', '1', '2'].map(arg => evaluate({ source, keys: ['none'], args: [arg], buffers: false }));
  const settled = await Promise.allSettled(calls);
  expect(settled.map(each => (each.status === 'fulfilled' ? each.value : (each.reason as Error).message))).toEqual([
    'ODD first',
    '1',
    '2',
  ]);
});

test('if the user is not allowed to send the text, this does not cause more commands for each call', async () => {
  const user = randomUUID();
  const admin = new Redis(redisUrl());
  await admin.call('acl', 'setuser', user, 'on', 'nopass', '~*', '+@all', '-eval');
  const port = Number(new URL(redisUrl()).port);
  const redis = new Redis({ port, username: user, password: 'any' });
  onTestFinished(async () => {
    redis.disconnect();
    await admin.call('acl', 'deluser', user);
    admin.disconnect();
  });
  const evaluate = createEvaluation({ redis, replicas: undefined });
  const send = vi.spyOn(redis, 'call');
  const source = `return '${user}'`;
  const calls = KEYS.map(key => evaluate({ source, keys: [key], args: [], buffers: false }));
  for (const { status, reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[]) {
    expect([status, reason]).toEqual([
      'rejected',
      expect.objectContaining({ message: expect.stringMatching(/^NOPERM/) }),
    ]);
  }
  expect(send.mock.calls.length).toBe(2 * KEYS.length);
});
