import { createHmac } from 'node:crypto';
import { Worker } from 'bullmq';
import { Pool } from 'undici';
import { serveCommands } from '../commands.ts';
import { commandsSent, connectBullmq, type DeliveryJob, QUEUE } from './bullmq.ts';

/**
 * The second half of the BullMQ baseline: a worker signs events (Standard Webhooks) and sends them over persistent
 * connections.
 * `bullmq-worker.ts <redis port> <control port> <endpoint port>…`
 */

const CONCURRENCY = 100;
const [redisPort, controlPort, ...endpoints] = process.argv.slice(2).map(Number);
const key = Buffer.alloc(32, 7);
const pools = endpoints.map(
  port =>
    new Pool(`http://127.0.0.1:${port}`, {
      connections: CONCURRENCY,
      pipelining: 1,
      headersTimeout: 15_000,
      bodyTimeout: 15_000,
    }),
);

async function deliver({ id, endpoint, body }: DeliveryJob): Promise<void> {
  const timestamp = Math.floor(Date.now() / 1_000);
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  const answer = await (pools[endpoint] as Pool).request({
    path: '/hook',
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': `v1,${signature}`,
    },
    body,
  });
  await answer.body.dump();
  if (answer.statusCode >= 300) throw new Error(`the endpoint answered ${answer.statusCode}`);
}

const worker = new Worker<DeliveryJob>(QUEUE, job => deliver(job.data), {
  connection: connectBullmq(redisPort as number),
  concurrency: CONCURRENCY,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 1_000 },
});
// Deletes the queue of the previous run.
worker.on('error', () => {});
await worker.waitUntilReady();
serveCommands(controlPort as number, { commands: () => commandsSent() });
