import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startProxy } from '../../test/chaos/proxy.ts';
import { type RedisServer, startRedis } from '../../test/support/redis/server.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis, type RedisClient } from './client.ts';
import type { NamedScript } from './named-scripts.ts';
import { classifyRedisFailure } from './redis-metrics.ts';

const log = createLogger({ level: 'silent' });

function scriptOf(source: string): NamedScript {
  return { name: 'test', source, keys: ['list'], listedKeys: undefined, args: ['value'], takesMore: false };
}
const WRITE = scriptOf("#!lua\nreturn redis.call('RPUSH', KEYS[1], ARGV[1])");
const READ = scriptOf("#!lua flags=no-writes\nreturn redis.call('LLEN', KEYS[1])");
/** Like a script for an event that has already been stored, this does not write, but would be able to. */
const FIND = scriptOf("#!lua\nreturn redis.call('LLEN', KEYS[1])");

describe('a client that waits for a replica', () => {
  let master: RedisServer;
  let replica: RedisServer;
  let client: RedisClient;
  let plain: RedisClient;
  const run = (script: NamedScript, by = client) => by.runNamed(script, { keys: { list: 'l' }, args: { value: 'v' } });
  const waits = async () =>
    Number(/cmdstat_wait:calls=(\d+)/.exec(String(await master.command('INFO', 'commandstats')))?.[1] ?? 0);

  beforeAll(async () => {
    master = await startRedis();
    replica = await startRedis({ extra: ['--replicaof', '127.0.0.1', `${master.port}`] });
    client = await connectRedis({ url: master.url, waitReplicas: 1 }, log);
    plain = await connectRedis(master.url, log);
    while ((await master.command('WAIT', 1, 100)) !== 1) await delay(50);
  });
  afterAll(async () => {
    await client?.close();
    await plain?.close();
    await replica?.kill('SIGCONT');
    await replica?.stop();
    await master?.stop();
  });

  test('has its writes on the replica', async () => {
    for (let length = 1; length <= 20; length++) {
      expect(await run(WRITE)).toBe(length);
      expect(await replica.command('LLEN', 'l')).toBe(length);
    }
    expect(client.unconfirmedWrite()).toBeUndefined();
  });

  test('shares a WAIT among concurrent writes', async () => {
    const before = await waits();
    await Promise.all(Array.from({ length: 200 }, () => run(WRITE)));
    // On a busy machine, they are written in more parts.
    expect((await waits()) - before).toBeLessThanOrEqual(100);
  });

  test('rejects a write that no replica confirms, which is executed nevertheless, and continues to read', async () => {
    const length = Number(await run(WRITE));
    await replica.kill('SIGSTOP');
    // Another connection has written it. This connection only reads it.
    await run(WRITE, plain);
    await expect(run(FIND)).rejects.toThrow('only 0 of 1');
    const error = await run(WRITE).catch((cause: Error) => cause);
    expect(error).toMatchObject({ name: 'NotReplicatedError', message: expect.stringContaining('only 0 of 1') });
    expect(classifyRedisFailure(error)).toBe('replicas');
    expect(client.unconfirmedWrite()).toBe(error);
    expect(await run(READ)).toBe(length + 2);
    await replica.kill('SIGCONT');
    await expect.poll(() => run(FIND).catch(() => 0), { timeout: 20_000 }).toBe(length + 2);
    expect(await replica.command('LLEN', 'l')).toBe(length + 2);
    expect(client.unconfirmedWrite()).toBeUndefined();
  });

  test('rejects without a replica, and works again once there is one', async () => {
    await replica.kill();
    await expect(run(WRITE)).rejects.toThrow('only 0 of 1');
    await replica.restart();
    await expect.poll(() => run(WRITE).catch(() => 0), { timeout: 20_000 }).toBeGreaterThan(0);
  });

  test('does not wait for a script whose lost writes are repeated', async () => {
    await replica.kill('SIGSTOP');
    const marked = scriptOf("#!lua\n--@unconfirmed\nreturn redis.call('RPUSH', KEYS[1], ARGV[1])");
    expect(await run(marked)).toBeGreaterThan(0);
    await replica.kill('SIGCONT');
  });

  test('does not accept the confirmation of a successor at the same address', async () => {
    const other = await startRedis();
    const otherReplica = await startRedis({ extra: ['--replicaof', '127.0.0.1', `${other.port}`] });
    while ((await other.command('WAIT', 1, 100)) !== 1) await delay(50);
    const service = await startProxy(master.port);
    const behind = await connectRedis({ url: service.url, waitReplicas: 1 }, log);
    try {
      await expect.poll(() => run(WRITE, behind).catch(() => 0), { timeout: 20_000 }).toBeGreaterThan(0);
      // The connection to the previous master remains open, as behind a Service.
      service.forwardTo(other.port);
      const clients = String(await master.command('CLIENT', 'LIST')).split('\n');
      const waiting = clients.filter(each => each.includes('cmd=wait')).map(each => /^id=(\d+)/.exec(each)?.[1] ?? '');
      for (const id of waiting) await master.command('CLIENT', 'KILL', 'ID', id);
      await delay(100);
      // On a busy machine, the first write may fail because the connection is being closed.
      const outcomes: string[] = [];
      const write = async () => {
        const outcome = await run(WRITE, behind).then(
          () => 'accepted',
          (error: Error) => error.message,
        );
        outcomes.push(outcome);
        return outcome;
      };
      await expect.poll(write, { timeout: 20_000 }).toContain('the master changed');
      expect(outcomes).not.toContain('accepted');
    } finally {
      await behind.close();
      service.stop();
      await otherReplica.stop();
      await other.stop();
    }
  });

  test('rejects writes while the master is unavailable, and works again afterwards', async () => {
    await master.kill();
    await expect(run(WRITE)).rejects.toThrow();
    await master.restart();
    await delay(100);
    await expect.poll(() => run(WRITE).catch(() => 0), { timeout: 20_000 }).toBeGreaterThan(0);
  });
});
