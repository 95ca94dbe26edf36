import { expect, test } from 'vitest';
import type { RedisClient } from '../redis/client.ts';
import { createControlRecord } from './control-store.ts';

/** Records the commands sent to Redis. */
function start(hasMailServer?: boolean) {
  const sent: unknown[][] = [];
  const redis = {
    readHash: async () => ({}),
    run: async (script: string, _keys: readonly string[], args: readonly unknown[]) => {
      sent.push([script, ...args]);
      return script === 'lead' ? ['OK', '7'] : 'OK';
    },
    call: async (...args: unknown[]) => void sent.push(args),
  } as unknown as RedisClient;
  return { record: createControlRecord(redis, undefined, undefined, hasMailServer), sent };
}

test.each([
  [true, '1'],
  [false, '0'],
])('writes with the fence after leading whether there is a mail server (%s)', async (has, stored) => {
  const { record, sent } = start(has);
  await record.lead('uid', 1, 1);
  expect(sent.map(([script]) => script)).toEqual(['lead']);
  await record.markClusterReady(7);
  const [script, fence, ...ops] = sent[1] as unknown[];
  expect([script, fence]).toEqual(['patch', 7]);
  expect(ops.slice(-7)).toEqual(['HSET', 1, 4, 'ready', '1', 'mails', stored]);
});

test('a controller that does not know does not change the mail server', async () => {
  const { record, sent } = start();
  await record.markClusterReady(7);
  expect(sent[0]).not.toContain('mails');
});
