import { globSync } from 'node:fs';
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { event, startPart } from '../../test/support/part/part.ts';
import { startRedis } from '../../test/support/redis/server.ts';
import { redisClusterUrl, redisUrl } from '../../test/support/redis/shared.ts';
import { HOUR_MS } from '../part/keys.ts';
import { sweepAll } from '../part/sweep/testing/sweep-all.ts';
import { createTenant } from '../record/testing/tenant.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis, type RedisClient } from './client.ts';
import { followRedisClock } from './clock.ts';
import { keySlot } from './key-slot.ts';
import { type ScriptName, scriptSource } from './scripts.ts';
import { onEachRedis } from './testing/each-redis.ts';

const log = createLogger({ level: 'silent' });

async function connect(url: string): Promise<RedisClient> {
  const redis = await connectRedis(url, log);
  onTestFinished(() => redis.close());
  return redis;
}

const reconnected = (redis: RedisClient) => new Promise<void>(resolve => redis.onReconnect(resolve));

onEachRedis(redis => {
  test('detects whether Redis is a Cluster', async () => {
    const replies = (await redis().callAll('INFO', 'cluster')) as string[];
    expect(replies).toHaveLength(redis().cluster ? 3 : 1);
    for (const info of replies) expect(info.includes('cluster_enabled:1')).toBe(redis().cluster);
    expect(redis().isReady()).toBe(true);
  });

  test('finds the master of a key', async () => {
    const names = await Promise.all(
      redis()
        .masters()
        .map(async ({ name, call }) => `${name} ${await call('PING')}`),
    );
    const keys = Array.from({ length: 50 }, (_, i) => `{q:ten_${i}:orders:0}:meta`);
    const masters = new Set(keys.map(key => redis().masterOf(key)));
    expect([...masters].map(name => `${name} PONG`).toSorted()).toEqual(names.toSorted());
    for (const key of keys) {
      for (const { call } of redis().cluster ? redis().masters() : []) {
        expect([key, await call('CLUSTER', 'KEYSLOT', key)]).toEqual([key, keySlot(key)]);
      }
    }
    await redis().call('set', '{q:ten_master:orders:0}:x', '1', 'PX', 5_000);
    const found: string[] = [];
    for (const { name, call } of redis().masters()) {
      if (((await call('KEYS', '{q:ten_master:*')) as string[]).length > 0) found.push(name);
    }
    expect(found).toEqual([redis().masterOf('{q:ten_master:orders:0}:x')]);
  });

  test('a script that the server does not know is sent once', async () => {
    const t = createTenant(redis());
    await redis().callAll('SCRIPT', 'FLUSH', 'SYNC');
    await t.apply(t.routes({}));
    expect(await t.control.readCluster()).toBeDefined();
  });

  test('binary data is returned unchanged', async () => {
    const { t, d } = await startPart(redis(), { a: {} }, ['k']);
    const body = Buffer.from([0, 255, 10, 13, 128, 0]);
    await t.ingest(event('k', { body }));
    const { events } = await d.exchange();
    expect(events.map(each => each.body)).toEqual([body]);
  });

  test('commands and scripts of a turn are sent to each node in a single write', async () => {
    const keys = Array.from({ length: 60 }, (_, n) => `none:${n}`);
    const sendAll = () =>
      Promise.all(keys.flatMap(key => [redis().call('EXISTS', key), redis().run('hashes', [key], [])]));
    // Afterwards, every node knows the script.
    await sendAll();
    const writes = (['_write', '_writev'] as const).map(name => vi.spyOn(Socket.prototype, name as '_write'));
    onTestFinished(() => writes.forEach(spy => spy.mockRestore()));
    await sendAll();
    const sockets = writes.flatMap(spy => spy.mock.contexts);
    expect(sockets).toHaveLength(redis().masters().length);
    expect(new Set(sockets).size).toBe(sockets.length);
  });

  test('follows the clock of Redis and never goes backward', async () => {
    const clock = await followRedisClock(redis(), createLogger({ level: 'silent' }));
    onTestFinished(() => clock.stop());
    const [time] = (await redis().callAll('TIME')) as [[string, string]];
    expect(Math.abs(clock.nowMs() - Number(time[0]) * 1_000)).toBeLessThan(10_000);
    const readings = Array.from({ length: 1_000 }, () => clock.nowMs());
    expect(readings).toEqual(readings.toSorted((a, b) => a - b));
  });
});

test('accepts many concurrent commands from the start, on every node of a Cluster', async () => {
  const redis = await connect(redisClusterUrl());
  const replies = await Promise.all(Array.from({ length: 300 }, (_, n) => redis.call('EXISTS', `none:${n}`)));
  expect(new Set(replies)).toEqual(new Set([0]));
});

test('on a Cluster, an undeclared key is refused, so the tests above would fail', async () => {
  const cluster = await connect(redisClusterUrl());
  const t = createTenant(cluster);
  // The keys of two slots are used in the same script.
  await expect(cluster.run('hashes', [`{${t.tenant}}a`, `{${t.tenant}x}b`], [])).rejects.toThrow(/CROSSSLOT|slot/i);
});

test('scripts do not create key names: each key is KEYS[n], or is passed', () => {
  const scripts = new URL('scripts/', import.meta.url);
  const names = globSync('*.lua', { cwd: scripts }).map(file => basename(file, '.lua') as ScriptName);
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) {
    for (const call of scriptSource(name).matchAll(/redis\.call\('(\w+)'(?:, 'ENCODING')?, ([^,)]+)/g)) {
      if (call[1] === 'PUBLISH') continue;
      expect([name, call[0], /^(KEYS\[|unpack\(KEYS|key$|due$|hold$)/.test(call[2] as string)]).toEqual([
        name,
        call[0],
        true,
      ]);
    }
  }
});

test.each([
  ['', redisUrl],
  [', to each node of a Cluster', redisClusterUrl],
])('commands of one turn are sent in one write%s', async (_where, url) => {
  const redis = await connect(url());
  const master = redis.masterOf('{turn}a');
  async function reads() {
    const stats = await redis
      .masters()
      .find(({ name }) => name === master)
      ?.call('INFO', 'stats');
    return Number(/total_reads_processed:(\d+)/.exec(String(stats))?.[1]);
  }
  /** Redis has time to read the written data. */
  function work(): void {
    for (const untilMs = performance.now() + 1; performance.now() < untilMs; );
  }
  const before = await reads();
  for (let i = 0; i < 100; i++) {
    const first = redis.call('get', '{turn}a');
    work();
    const second = redis.run('hashes', ['{turn}b'], []);
    work();
    await Promise.all([first, second, redis.call('get', '{turn}c')]);
  }
  // Only the connection above uses this Redis. It may start late.
  expect((await reads()) - before).toBeLessThan(130);
});

describe('when Redis is unavailable', () => {
  test('commands fail immediately and work again after the restart; nothing is sent twice', async () => {
    const server = await startRedis({ appendonly: true });
    onTestFinished(server.stop);
    const redis = await connect(server.url);
    const { t, d } = await startPart(redis, { a: {} }, ['k']);
    await t.send('k');
    const back = reconnected(redis);
    await server.kill();
    const before = performance.now();
    await expect(t.send('k')).rejects.toThrow();
    await expect(d.exchange()).rejects.toThrow();
    expect(performance.now() - before).toBeLessThan(4_000);
    await server.restart();
    await back;
    expect(await t.send('k')).toHaveLength(1);
    expect(await redis.call('xlen', t.keys.log)).toBe(2);
  });

  test('commands in progress when the connection was lost are rejected and not repeated', async () => {
    const server = await startRedis({ appendonly: true });
    onTestFinished(server.stop);
    const redis = await connect(server.url);
    await redis.call('set', 'n', 0);
    await server.kill('SIGSTOP');
    const asked = Array.from({ length: 5 }, () => redis.call('incr', 'n'));
    const answers = Promise.allSettled(asked);
    const back = reconnected(redis);
    await server.kill();
    for (const { status } of await answers) expect(status).toBe('rejected');
    await server.restart();
    await back;
    expect(await redis.call('get', 'n')).toBe('0');
  });

  test('listeners are notified when messages may have been missed', async () => {
    const server = await startRedis();
    onTestFinished(server.stop);
    const redis = await connect(server.url);
    let lost = 0;
    let notify = () => {};
    const heard: string[] = [];
    const next = () => new Promise<void>(resolve => (notify = resolve));
    const first = next();
    redis.subscribe(
      ['c'],
      (_channel, message) => heard.push(message),
      () => {
        lost++;
        notify();
      },
    );
    await first;
    const second = next();
    await server.restart();
    await second;
    expect(lost).toBe(2);
  });

  test('a channel that is denied after a reconnect does not end the process', async () => {
    const server = await startRedis();
    onTestFinished(server.stop);
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    const redis = await connect(server.url);
    const listening = new Promise<void>(resolve => redis.subscribe(['c'], () => {}, resolve));
    await listening;
    // Redis closes the connection of a subscriber that is not allowed to use its channel anymore.
    await server.command('ACL', 'SETUSER', 'default', 'resetchannels');
    await expect.poll(() => redis.deniedCommand(), { timeout: 10_000 }).toBeDefined();
    await redis.call('set', 'n', '0');
    expect(unhandled).toEqual([]);
  });
});

test('out of memory: events are refused as a whole, and outcomes are accepted', async () => {
  const server = await startRedis({ maxmemory: '8mb' });
  onTestFinished(server.stop);
  const redis = await connect(server.url);
  const { t, d } = await startPart(redis, { a: {}, b: { route: 'paused' } }, ['k']);
  await t.send('k');
  const { claims } = await d.exchange();
  expect(claims).toHaveLength(1);
  const fill = async () => {
    for (;;) await t.ingest(event('k', { body: Buffer.alloc(200_000) }));
  };
  await expect(fill()).rejects.toThrow(/^OOM/);
  // The limit is far exceeded because a small script may still be allowed at the limit.
  await server.command('CONFIG', 'SET', 'maxmemory', '1mb');
  d.end(claims[0] as (typeof claims)[0]);
  await d.exchange(0);
  expect((await t.counts('a'))[3]).toBe(1);
  await t.setRow('b', {});
  await expect(t.advance()).rejects.toThrow(/^OOM/);
  const events = await redis.call('xlen', t.keys.log);
  await t.change({ kind: 'meta', field: 'retentionMs', value: '1' });
  t.clock.ms += HOUR_MS;
  await sweepAll(t);
  expect(await redis.call('xlen', t.keys.log)).toBeLessThan(Number(events));
  await server.command('CONFIG', 'SET', 'maxmemory', '64mb');
  await t.send('k');
});
