import Fastify, { type FastifyReply } from 'fastify';
import { Redis } from 'ioredis';

/**
 * The XADD baseline: Fastify adds events to a stream and responds with 202 after the reply, i.e. after the fsync.
 * Events that arrive during a pipeline are sent with the next one, up to 64 at a time. `xadd.ts <port> <redis port>`
 */

const MOST = 64;
const [port, redisPort] = process.argv.slice(2).map(Number);
const redis = new Redis(redisPort as number, '127.0.0.1');
let waiting: { body: Buffer; reply: FastifyReply }[] = [];
let busy = false;

async function flush(): Promise<void> {
  const batch = waiting.splice(0, MOST);
  busy = batch.length > 0;
  if (!busy) return;
  const pipeline = redis.pipeline();
  for (const { body } of batch) pipeline.xadd('events', '*', 'b', body);
  const replies = await pipeline.exec().catch(() => null);
  void flush();
  for (const [index, { reply }] of batch.entries()) {
    const [error, id] = replies?.[index] ?? [new Error('no reply'), undefined];
    if (error) reply.code(503).send();
    else reply.code(202).send({ id, duplicate: false });
  }
}

const app = Fastify({ logger: false });
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
app.post('/events', (request, reply) => {
  waiting.push({ body: request.body as Buffer, reply });
  if (busy) return;
  busy = true;
  setImmediate(() => void flush());
});
await app.listen({ port: port as number, host: '127.0.0.1' });
