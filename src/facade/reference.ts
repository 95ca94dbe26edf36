import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { serveOpenApi } from '../http/openapi-document.ts';
import { ICON } from './icon.ts';
import { describeRoutes, type OpenApiDocument } from './openapi.ts';
import { ROUTES } from './routes.ts';

/**
 * Content security policy for the page. The policy only allows files from the same origin. We can't require https
 * because the facade serves http, but a TLS proxy in front can set another policy.
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

/**
 * Serves `/openapi.json`, and the page for the reference at `/docs`. No authentication is required. Most replicas are
 * never asked for the document. Creating it would take a tenth of their CPU time to start.
 */
export async function registerReference(app: FastifyInstance, version: string): Promise<void> {
  const document: Partial<OpenApiDocument> = {};
  const read = () =>
    document.paths === undefined ? Object.assign(document, describeRoutes(ROUTES, version)) : document;
  const sendDocument = serveOpenApi(app, read);
  await app.register(swagger, { mode: 'static', specification: { document: document as never } });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: PAGE_POLICY,
    theme: {
      title: 'Sluice REST API',
      favicon: [{ filename: 'icon.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content: ICON }],
    },
    // The other layout adds a bar with a foreign logo and a field for the address of a document.
    uiConfig: { layout: 'BaseLayout', tryItOutEnabled: false },
    // `transformSpecification` would print the YAML again for each request.
    uiHooks: {
      onRequest: (request, reply, done) => {
        read();
        // The page would print the document again for each request, although no token is required.
        if (request.routeOptions.url === '/docs/json') sendDocument(request, reply);
        else done();
      },
    },
  });
}
