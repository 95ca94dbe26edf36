import type { FastifyInstance } from 'fastify';

/** Serves an OpenAPI document at `/openapi.json`. No authentication is required. */
export function serveOpenApi(app: FastifyInstance, document: object): void {
  const text = JSON.stringify(document);
  app.get('/openapi.json', async (_request, reply) => reply.type('application/json; charset=utf-8').send(text));
}
