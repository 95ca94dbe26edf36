import type { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startProxy } from '../../../test/chaos/proxy.ts';
import { masterOfSlot, startRedisCluster } from '../../../test/support/redis/cluster.ts';
import { redisCommand, startRedis } from '../../../test/support/redis/server.ts';
import { redisClusterUrl, redisUrl } from '../../../test/support/redis/shared.ts';
import { createLogger } from '../../telemetry/log.ts';
import { connectRedis } from '../client.ts';
import { keySlot } from '../key-slot.ts';
import { onEachRedis } from '../testing/each-redis.ts';
import { findRedis } from './connections.ts';
import { createPushConnection } from './push-connection.ts';

const log = createLogger({ level: 'silent' });
const soon = { timeout: 10_000, interval: 10 };

async function start(url: string, channels: readonly string[]) {
  const pushes = createPushConnection(await findRedis({ url }, log), log);
  onTestFinished(() => pushes.close());
  const heard = new Map<string, { messages: string[]; listening: number }>();
  for (const channel of channels) {
    const each = { messages: [] as string[], listening: 0 };
    heard.set(channel, each);
    pushes.listen(channel, {
      onMessage: message => void each.messages.push(message.toString()),
      onListening: () => void each.listening++,
    });
  }
  const of = (channel: string) => heard.get(channel) as { messages: string[]; listening: number };
  await vi.waitFor(() => expect(channels.map(channel => of(channel).listening)).not.toContain(0), soon);
  return { pushes, of };
}

const names = (count: number) => Array.from({ length: count }, (_, i) => `{c${Math.random()}${i}}:push`);

onEachRedis(redis => {
  const url = () => (redis().cluster ? redisClusterUrl() : redisUrl());

  test('receives messages from any node, and the fence arrives after earlier messages', async () => {
    const channels = names(9);
    const { pushes, of } = await start(url(), channels);
    for (const channel of channels) {
      for (let i = 0; i < 20; i++) await redis().call('spublish', channel, `${i}`);
      await pushes.fence(channel);
      expect(of(channel)).toEqual({ messages: Array.from({ length: 20 }, (_, i) => `${i}`), listening: 1 });
    }
  });

  test('reconnects and reports this after a disconnect, and has no fence until then', async () => {
    const channels = names(6);
    const { pushes, of } = await start(url(), channels);
    await redis().callAll('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await vi.waitFor(() => expect(channels.map(channel => of(channel).listening)).toEqual(channels.map(() => 2)), soon);
    for (const channel of channels) {
      await redis().call('spublish', channel, 'again');
      await pushes.fence(channel);
      expect(of(channel).messages).toEqual(['again']);
    }
    const left = channels[0] as string;
    pushes.leave(left);
    await expect(pushes.fence(left)).rejects.toThrow('has no subscription');
  });
});

test('subscribes to a limited number of channels at the same time', async () => {
  const connections = await findRedis({ url: redisUrl() }, log);
  let [now, most] = [0, 0];
  const createOnce: typeof connections.createOnce = where => {
    const redis = connections.createOnce(where);
    const subscribe = redis.ssubscribe.bind(redis) as (channel: string) => Promise<unknown>;
    redis.ssubscribe = (async (channel: string) => {
      most = Math.max(most, ++now);
      return await subscribe(channel).finally(() => now--);
    }) as Redis['ssubscribe'];
    return redis;
  };
  const pushes = createPushConnection({ ...connections, createOnce }, log);
  onTestFinished(() => pushes.close());
  const onListening = vi.fn<() => void>();
  for (const channel of names(300)) pushes.listen(channel, { onMessage: () => {}, onListening });
  await vi.waitFor(() => expect(onListening).toHaveBeenCalledTimes(300), soon);
  expect(most).toBe(64);
});

test('has no subscription for a channel that was left before it was subscribed', async () => {
  const server = await startRedis();
  onTestFinished(server.stop);
  const [left = '', kept = ''] = names(2);
  const { pushes } = await start(server.url, []);
  const listener = { onMessage: () => {}, onListening: vi.fn<() => void>() };
  pushes.listen(left, listener);
  pushes.leave(left);
  pushes.listen(kept, listener);
  pushes.leave(kept);
  pushes.listen(kept, listener);
  const count = () => server.command('PUBSUB', 'SHARDNUMSUB', left, kept);
  await vi.waitFor(() => expect(listener.onListening).toHaveBeenCalledOnce(), soon);
  await pushes.fence(kept);
  await vi.waitFor(async () => expect(await count()).toEqual([left, 0, kept, 1]), { timeout: 2_000, interval: 10 });
});

test('reports a channel that it is not allowed to subscribe to until it is allowed', async () => {
  const server = await startRedis();
  onTestFinished(server.stop);
  const [denied = ''] = names(1);
  await server.command('ACL', 'SETUSER', 'default', 'resetchannels');
  const { pushes } = await start(server.url, []);
  const onListening = vi.fn<() => void>();
  pushes.listen(denied, { onMessage: () => {}, onListening });
  await vi.waitFor(() => expect(pushes.problem()?.message).toMatch(/^NOPERM/), soon);
  await server.command('ACL', 'SETUSER', 'default', 'allchannels');
  await vi.waitFor(() => expect(onListening).toHaveBeenCalledOnce(), soon);
  expect(pushes.problem()).toBeUndefined();
});

test('leaves a server that does not respond while there are no messages', async () => {
  const [first, second] = [await startRedis(), await startRedis()];
  for (const server of [first, second]) onTestFinished(server.stop);
  const proxy = await startProxy(first.port);
  onTestFinished(proxy.stop);
  const channels = names(3);
  const { of } = await start(proxy.url, channels);
  proxy.hang();
  proxy.forwardTo(second.port);
  const isAgain = () => expect(channels.map(channel => of(channel).listening)).toEqual([2, 2, 2]);
  await vi.waitFor(isAgain, { timeout: 25_000, interval: 50 });
  await second.command('SPUBLISH', channels[0] as string, 'there');
  await vi.waitFor(() => expect(of(channels[0] as string).messages).toEqual(['there']), soon);
}, 60_000);

test('follows a channel whose slot moves to another node', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const channels = names(6);
  const { pushes, of } = await start(cluster.url, channels);
  const channel = channels[0] as string;
  const [first] = cluster.nodes;
  const slot = Number(await redisCommand(first?.port as number, 'CLUSTER', 'KEYSLOT', channel));
  const owner = Math.min(2, Math.floor((slot * 3) / 16_384));
  const target = cluster.nodes[(owner + 1) % 3];
  const id = String(await redisCommand(target?.port as number, 'CLUSTER', 'MYID'));
  const others = [owner, (owner + 2) % 3].map(at => cluster.nodes[at]?.port as number);
  for (const port of [target?.port as number, ...others]) {
    await redisCommand(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', id);
  }
  await vi.waitFor(() => expect(of(channel).listening).toBeGreaterThan(1), soon);
  const redis = await connectRedis(cluster.url, log);
  onTestFinished(() => redis.close());
  await redis.call('spublish', channel, 'there');
  await pushes.fence(channel);
  expect(of(channel).messages).toEqual(['there']);
});

test('finds the node of a channel while the only node in the settings is unavailable', async () => {
  const cluster = await startRedisCluster({ replicas: true });
  onTestFinished(() => cluster.stop());
  const first = masterOfSlot(cluster, 0);
  // A channel for each master.
  const all = names(60);
  const channels = cluster.nodes
    .slice(0, 3)
    .map(node => all.find(name => masterOfSlot(cluster, keySlot(name)) === node));
  const { pushes, of } = await start(first.url, channels as string[]);
  await first.kill();
  const channel = channels[0] as string;
  await vi.waitFor(() => expect(of(channel).listening).toBe(2), { timeout: 25_000, interval: 50 });
  await pushes.fence(channel);
}, 60_000);
