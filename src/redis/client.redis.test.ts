import { describe, expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../test/support/redis/server.ts';
import { redisClusterUrl, redisUrl } from '../../test/support/redis/shared.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis, type RedisClient } from './client.ts';
import { followRedisClock } from './clock.ts';
import { scriptSource } from './scripts.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, event, items, QUEUE, START_MS } from './testing/tenant.ts';

const log = createLogger({ level: 'silent' });

async function connect(url: string): Promise<RedisClient> {
  const redis = await connectRedis(url, log);
  onTestFinished(() => redis.close());
  return redis;
}

const reconnected = (redis: RedisClient) => new Promise<void>(resolve => redis.onReconnect(resolve));

onEachRedis(redis => {
  test('finds out by itself whether it is a Cluster', async () => {
    const replies = (await redis().callAll('INFO', 'cluster')) as string[];
    expect(replies).toHaveLength(redis().cluster ? 3 : 1);
    for (const info of replies) expect(info.includes('cluster_enabled:1')).toBe(redis().cluster);
    expect(redis().isReady()).toBe(true);
  });

  test('a script that the server does not know is sent once', async () => {
    const t = createTenant(redis());
    await redis().callAll('SCRIPT', 'FLUSH', 'SYNC');
    await t.apply(t.routes({}));
    expect(await t.control.readCluster()).toBeDefined();
  });

  test('binary comes back as it was', async () => {
    const t = createTenant(redis());
    await t.apply(t.routes({}));
    const body = Buffer.from([0, 255, 10, 13, 128, 0]);
    const config = (await t.ingress.readQueue(t.tenant, QUEUE)) as never;
    await t.ingress.ingest(t.tenant, QUEUE, config, [event('e', 'k', body)]);
    const [stored] = await t.inboxes.readEvents(t.tenant, QUEUE, 'gen1', [`${START_MS}-0`]);
    expect(stored?.body.equals(body)).toBe(true);
  });

  test("Redis's clock is followed, and never goes backward", async () => {
    const clock = await followRedisClock(redis());
    onTestFinished(() => clock.stop());
    const [time] = (await redis().callAll('TIME')) as [[string, string]];
    expect(Math.abs(clock.nowMs() - Number(time[0]) * 1_000)).toBeLessThan(3_000);
    const readings = Array.from({ length: 1_000 }, () => clock.nowMs());
    expect(readings).toEqual(readings.toSorted((a, b) => a - b));
  });
});

test('takes many commands at once from the start, on every node of a Cluster', async () => {
  const redis = await connect(redisClusterUrl());
  const replies = await Promise.all(Array.from({ length: 300 }, (_, n) => redis.call('EXISTS', `none:${n}`)));
  expect(new Set(replies)).toEqual(new Set([0]));
});

test('on a Cluster a key that is not declared is refused: the suites above would fail', async () => {
  const cluster = await connect(redisClusterUrl());
  const t = createTenant(cluster);
  // The keys of two slots in one script.
  await expect(cluster.run('fields', [`{${t.tenant}}a`, `{${t.tenant}x}b`], [])).rejects.toThrow(/CROSSSLOT|slot/i);
});

test('no script builds the name of a key: each is KEYS[n], or is given as such', () => {
  const names = ['act', 'bodies', 'catchup', 'exchange', 'expire', 'fields', 'ingest', 'lead', 'lookup'] as const;
  const more = ['lower', 'next', 'own', 'patch', 'pick', 'route', 'settle', 'trim'] as const;
  const tokens = ['fold', 'release', 'reserve', 'survey'] as const;
  const inbox = ['enqueue', 'finish', 'inspect', 'metas', 'permit', 'pull', 'sizes', 'walk'] as const;
  const replays = ['debit', 'settle-replay'] as const;
  for (const name of [...names, ...more, ...tokens, ...inbox, ...replays]) {
    for (const call of scriptSource(name).matchAll(/redis\.call\('(\w+)'(?:, 'ENCODING')?, ([^,)]+)/g)) {
      if (call[1] === 'PUBLISH') continue;
      expect([
        name,
        call[0],
        /^(KEYS\[|key$|metaKey$|subKey$|hold$|pend$|due$|try$|claims$|rec$|records$|traffic$)/.test(call[2] as string),
      ]).toEqual([name, call[0], true]);
    }
  }
});

test('commands of one turn leave in one write', async () => {
  const redis = await connect(redisUrl());
  const reads = async () =>
    Number(/total_reads_processed:(\d+)/.exec(String((await redis.callAll('INFO', 'stats'))[0]))?.[1]);
  const before = await reads();
  for (let i = 0; i < 200; i++) {
    await Promise.all([redis.call('get', 'a'), redis.run('fields', ['b'], []), redis.call('get', 'c')]);
  }
  // Nobody else uses this Redis but the connection above, which may begin late.
  expect((await reads()) - before).toBeLessThan(230);
});

describe('when Redis is away', () => {
  test('commands fail at once, and work again after the restart; nothing is sent twice', async () => {
    const server = await startRedis({ appendonly: true });
    onTestFinished(server.stop);
    const redis = await connect(server.url);
    const t = createTenant(redis);
    await t.apply(t.routes({}));
    await t.ingest(['k']);
    const back = reconnected(redis);
    await server.kill();
    const before = performance.now();
    await expect(t.ingest(['k'])).rejects.toThrow();
    await expect(t.own()).rejects.toThrow();
    expect(performance.now() - before).toBeLessThan(1_000);
    await server.restart();
    await back;
    expect((await t.ingest(['k'])).length).toBe(1);
    expect(await redis.call('xlen', `{q:${t.tenant}:${QUEUE}}:m:gen1`)).toBe(2);
  });

  test('what was in flight when the connection broke is rejected, not repeated', async () => {
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

  test('who listens is told when messages may have been missed', async () => {
    const server = await startRedis();
    onTestFinished(server.stop);
    const redis = await connect(server.url);
    let lost = 0;
    let told = () => {};
    const heard: string[] = [];
    const next = () => new Promise<void>(resolve => (told = resolve));
    const first = next();
    redis.subscribe(
      ['c'],
      (_channel, message) => heard.push(message),
      () => {
        lost++;
        told();
      },
    );
    await first;
    const second = next();
    await server.restart();
    await second;
    expect(lost).toBe(2);
  });
});

test('out of memory: events are refused whole, outcomes are taken', async () => {
  const server = await startRedis({ maxmemory: '8mb' });
  onTestFinished(server.stop);
  const redis = await connect(server.url);
  const t = createTenant(redis);
  await t.apply(t.routes({ x: {} }, { maxBytes: 1e12 }));
  await t.activate('x', 'k');
  const [entry] = await t.ingest(['k']);
  const inbox = t.inboxOf('x');
  await t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', '', items([entry as never]));
  const fill = async () => {
    for (;;) await t.ingest(['k'], 'x'.repeat(200_000));
  };
  await expect(fill()).rejects.toThrow(/^OOM/);
  // Beyond doubt: at the limit itself a small script may still pass.
  await server.command('CONFIG', 'SET', 'maxmemory', '1mb');
  const claim = await t.inboxes.claim(inbox, t.nowMs(), 9, 't', 1_000);
  const [{ lane, ref }] = (claim as unknown as { claims: [{ lane: string; ref: string }] }).claims;
  expect(
    (await t.inboxes.complete(inbox, t.nowMs(), [{ lane, ref, token: 't', outcome: 'delivered', record: 'x' }]))
      .answers,
  ).toEqual(['OK']);
  await expect(t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', '', items([entry as never]))).rejects.toThrow(
    /^OOM/,
  );
  const owned = await t.own();
  expect(await t.queues.trim(owned, t.nowMs(), `${START_MS + 1}-0`, [])).toMatchObject({ more: false });
  await server.command('CONFIG', 'SET', 'maxmemory', '64mb');
  await t.ingest(['k']);
});
