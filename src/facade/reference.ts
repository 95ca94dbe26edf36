import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { serveOpenApi } from '../http/openapi-document.ts';
import { describeRoutes } from './openapi.ts';
import { ROUTES } from './routes.ts';

/**
 * The content security policy of the page, which only allows files from the same origin. It does not require https
 * because the facade serves http. A TLS proxy in front can set another policy.
 */
const PAGE_POLICY = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self' 'unsafe-inline'",
  'img-src': "'self' data:",
  'font-src': "'self'",
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

/** Serves `/openapi.json` and the reference page at `/docs` without authentication. */
export async function registerReference(app: FastifyInstance, version: string): Promise<void> {
  const document = describeRoutes(ROUTES, version);
  serveOpenApi(app, document);
  await app.register(swagger, { mode: 'static', specification: { document: document as never } });
  await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: PAGE_POLICY, uiConfig: { tryItOutEnabled: false } });
}
