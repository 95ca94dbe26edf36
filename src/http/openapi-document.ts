import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';

/**
 * Serves an OpenAPI document at `/openapi.json`. The response includes an `ETag`. If the request's `If-None-Match`
 * header contains this tag, the response is a 304 without a body. No authentication is required.
 *
 * @param read returns the document, and is only called for the first request
 */
export function serveOpenApi(app: FastifyInstance, read: () => object): void {
  let served: { readonly text: string; readonly etag: string } | undefined;
  app.get('/openapi.json', async (request, reply) => {
    const { text, etag } = (served ??= print(read()));
    reply.header('etag', etag).header('cache-control', 'no-cache');
    if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(text);
  });
}

function print(document: object) {
  const text = JSON.stringify(document);
  return { text, etag: `"${createHash('sha256').update(text, 'utf8').digest('base64url').slice(0, 22)}"` };
}

/** Compares an `If-None-Match` field with an ETag (RFC 9110, 13.1.2). Weak and strong tags are equal. */
function matches(field: string | undefined, etag: string): boolean {
  if (field === undefined) return false;
  const tags = field.split(',').map(tag => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}
