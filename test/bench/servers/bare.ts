import Fastify from 'fastify';

/** The bare baseline: Fastify reads 1 KiB and responds with 202. `bare.ts <port>` */

const app = Fastify({ logger: false });
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
app.post('/events', (_request, reply) => reply.code(202).send({ id: 'none', duplicate: false }));
await app.listen({ port: Number(process.argv[2]), host: '127.0.0.1' });
