import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../test/support/redis/server.ts';
import { connectRedis } from '../redis/client.ts';
import { createLogger } from './log.ts';

/** Returns a log, and its lines so far. */
function open() {
  const lines: string[] = [];
  return { log: createLogger({ level: 'debug' }, { write: line => void lines.push(line) }), lines };
}

test('an error response of Redis is logged without the arguments of its command', async () => {
  const server = await startRedis();
  onTestFinished(server.stop);
  const { log, lines } = open();
  const redis = await connectRedis(server.url, log);
  onTestFinished(redis.close);
  await redis.call('SET', 'key', 'text');
  const error: unknown = await redis.call('LPUSH', 'key', 'the body of an event').catch((cause: unknown) => cause);
  log.warn({ operation: 'ingest', err: error, suppressed: 0 }, 'store operation failed');
  const [line = ''] = lines;
  expect(JSON.parse(line)).toMatchObject({
    operation: 'ingest',
    err: { message: expect.stringMatching(/^WRONGTYPE /), stack: expect.any(String) },
    msg: 'store operation failed',
  });
  expect(line).not.toMatch(/the body|command"/);
});

test('a password that Redis does not accept is not logged, neither is it in a nested error', async () => {
  const server = await startRedis();
  onTestFinished(server.stop);
  const { log, lines } = open();
  const options = { lazyConnect: true, retryStrategy: () => null, username: 'nobody', password: 'a-wrong-password' };
  const redis = new Redis(server.port, '127.0.0.1', options);
  onTestFinished(() => redis.disconnect());
  const errors: Error[] = [];
  redis.on('error', error => errors.push(error));
  await redis.connect().catch(() => {});
  await expect.poll(() => errors.some(({ message }) => message.startsWith('WRONGPASS'))).toBe(true);
  const [error] = errors.filter(({ message }) => message.startsWith('WRONGPASS'));
  const nested = Object.assign(new Error('all nodes have failed'), { lastNodeError: error });
  for (const err of [error, nested, new AggregateError([error, nested], 'several')]) log.warn({ err }, 'failed');
  expect(lines).toHaveLength(3);
  for (const line of lines) expect(line).toMatch(/WRONGPASS/);
  expect(lines.join('\n')).not.toContain('a-wrong-password');
});

test('keeps the code and the status of an error, and leaves out objects', () => {
  const { log, lines } = open();
  const facts = { code: 'ECONNREFUSED', status: 503, conflictManagers: ['kubectl'], socket: { bytesRead: 1 } };
  log.warn({ err: Object.assign(new Error('failed'), facts) }, 'failed');
  const { err } = JSON.parse(lines[0] ?? '') as { readonly err: object };
  expect(err).toEqual({
    type: 'Error',
    message: 'failed',
    stack: expect.any(String),
    code: 'ECONNREFUSED',
    status: 503,
    conflictManagers: ['kubectl'],
  });
});
