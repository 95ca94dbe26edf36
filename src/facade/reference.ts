import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { describeRoutes } from './openapi.ts';
import { ROUTES } from './routes.ts';

/** `/openapi.json`, and a page to read it on at `/docs`: for everybody, without a token. */
export async function registerReference(app: FastifyInstance, version: string): Promise<void> {
  const document = describeRoutes(ROUTES, version);
  const text = JSON.stringify(document);
  app.get('/openapi.json', async (_request, reply) => reply.type('application/json; charset=utf-8').send(text));
  await app.register(swagger, { mode: 'static', specification: { document: document as never } });
  await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true, uiConfig: { tryItOutEnabled: false } });
}
