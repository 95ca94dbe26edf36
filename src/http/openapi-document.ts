import type { FastifyInstance } from 'fastify';
import { entityTagOf, matchesWeakly } from './entity-tag.ts';

/**
 * Serves an OpenAPI document at `/openapi.json`. The response includes an `ETag`. If the request's `If-None-Match`
 * header contains this tag, the response is a 304 without a body. No authentication is required.
 *
 * @param read returns the document, and is only called for the first request
 */
export function serveOpenApi(app: FastifyInstance, read: () => object): void {
  let served: { readonly bytes: Buffer; readonly etag: string } | undefined;
  app.get('/openapi.json', async (request, reply) => {
    const { bytes, etag } = (served ??= print(read()));
    reply.header('etag', etag).header('cache-control', 'no-cache');
    const known = request.headers['if-none-match'];
    if (known !== undefined && matchesWeakly(known, etag)) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(bytes);
  });
}

/** Returns the document as bytes because a text would be encoded again for each response, and kept until it is read. */
function print(document: object) {
  const text = JSON.stringify(document);
  return { bytes: Buffer.from(text), etag: entityTagOf(text) };
}
