import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPart } from '../../../test/support/part/part.ts';
import { listenTo } from '../../../test/support/part/pushes.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis/server.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { createLogger } from '../../telemetry/log.ts';

let server: RedisServer;
let redis: RedisClient;
beforeAll(async () => {
  server = await startRedis();
  redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
});
afterAll(async () => {
  await redis.close();
  await server.stop();
});

/** The number of commands that Redis has run for the data of parts, including those of scripts. */
async function commands(): Promise<number> {
  const text = String(await server.command('INFO', 'commandstats'));
  return [...text.matchAll(/^cmdstat_([hsxz]\w+):calls=(\d+)/gm)].reduce((sum, [, name, calls]) => {
    return name?.startsWith('ss') ? sum : sum + Number(calls);
  }, 0);
}

test.each([
  [1, 17, 15],
  [10, 17, 15],
])(
  'with %d subscriptions, storing and pushing an event takes %d commands, and delivering it takes %d',
  async (receivers, storing, delivering) => {
    const names = Array.from({ length: receivers }, (_, i) => `s${i}`);
    const { t, d } = await startPart(redis, Object.fromEntries(names.map(name => [name, {}])), ['k']);
    await d.exchange();
    const pushes = await listenTo(redis, server.url, t.part);
    const taken: [number, number][] = [];
    for (let i = 0; i < 3; i++) {
      t.clock.ms += 10;
      const before = await commands();
      await t.send('k');
      const stored = await commands();
      for (const { events } of await pushes.take()) {
        for (const claim of d.take(events)) d.end(claim);
        d.counts.pushed += receivers;
      }
      const ending = await commands();
      const { answers } = await d.exchange();
      expect(answers).toEqual(names.map(() => 'done'));
      taken.push([stored - before, (await commands()) - ending]);
      d.held.clear();
    }
    pushes.close();
    expect(taken.slice(1)).toEqual([
      [storing, delivering],
      [storing, delivering],
    ]);
  },
);
