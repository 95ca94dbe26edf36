import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../test/support/redis/server.ts';
import { createLogger } from '../telemetry/log.ts';
import { openRedis } from './late-client.ts';
import { hearNews } from './testing/heard.ts';

const SOON = { timeout: 20_000, interval: 100 };

test('a denied subscription is reported, and made as soon as it is permitted', async () => {
  const server = await startRedis();
  onTestFinished(server.stop);
  await server.command('ACL', 'SETUSER', 'sluice', 'on', '>secret', '~*', '+@all', 'resetchannels');
  const url = server.url.replace('//', '//sluice:secret@');
  const redis = openRedis({ url, log: createLogger({ level: 'silent' }) });
  onTestFinished(() => redis.close());
  const heard = hearNews(redis.client);
  await redis.opened;
  await expect.poll(() => redis.impairments()[0]?.reason, SOON).toBe('RedisAccessDenied');
  await server.command('ACL', 'SETUSER', 'sluice', '&news');
  await expect.poll(() => heard, SOON).toEqual(['listening']);
  await server.command('PUBLISH', 'news', 'x');
  await expect.poll(() => heard, SOON).toEqual(['listening', 'x']);
});
