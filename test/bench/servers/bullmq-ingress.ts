import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import Fastify, { type FastifyReply } from 'fastify';
import { serveCommands } from '../commands.ts';
import { commandsSent, connectBullmq, type DeliveryJob, QUEUE } from './bullmq.ts';

/**
 * The first half of the BullMQ baseline: Fastify adds a job for each endpoint and responds with 202 when they are
 * stored. Jobs of concurrent requests are added together, as in Sluice and XADD.
 * `bullmq-ingress.ts <port> <redis> <control>`
 */

const MOST = 64;
const [port, redisPort, controlPort] = process.argv.slice(2).map(Number);
const queue = new Queue<DeliveryJob>(QUEUE, {
  connection: connectBullmq(redisPort as number),
  defaultJobOptions: {
    attempts: 8,
    backoff: { type: 'exponential', delay: 1_000 },
    removeOnComplete: true,
    removeOnFail: 1_000,
  },
});
let endpoints = 1;
let waiting: { body: string; reply: FastifyReply }[] = [];
let busy = false;

async function flush(): Promise<void> {
  const batch = waiting.splice(0, MOST).map(request => ({ ...request, id: randomUUID() }));
  busy = batch.length > 0;
  if (!busy) return;
  const jobs = batch.flatMap(({ id, body }) =>
    Array.from({ length: endpoints }, (_, endpoint) => ({ name: 'deliver', data: { id, endpoint, body } })),
  );
  const stored = await queue.addBulk(jobs).then(
    () => true,
    () => false,
  );
  void flush();
  for (const { id, reply } of batch) {
    if (stored) reply.code(202).send({ id, duplicate: false });
    else reply.code(503).send();
  }
}

const app = Fastify({ logger: false });
app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, body));
app.post('/events', (request, reply) => {
  waiting.push({ body: request.body as string, reply });
  if (busy) return;
  busy = true;
  setImmediate(() => void flush());
});
await app.listen({ port: port as number, host: '127.0.0.1' });
serveCommands(controlPort as number, {
  endpoints: ({ count }: { count: number }) => {
    endpoints = count;
  },
  commands: () => commandsSent(),
});
