import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { entityTagOf, matchesWeakly } from './entity-tag.ts';

interface Served {
  readonly bytes: Buffer;
  readonly etag: string;
}

/**
 * Serves an OpenAPI document at `/openapi.json`. The response includes an `ETag`. If the request's `If-None-Match`
 * header contains this tag, the response is a 304 without a body. No authentication is required. Returns a function that
 * sends the same response to other requests.
 *
 * @param read returns the document, and is only called for the first request
 */
export function serveOpenApi(
  app: FastifyInstance,
  read: () => object,
): (request: FastifyRequest, reply: FastifyReply) => FastifyReply {
  let served: Served | undefined;
  function send(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { bytes, etag } = (served ??= print(read()));
    reply.header('etag', etag).header('cache-control', 'no-cache');
    const known = request.headers['if-none-match'];
    if (known !== undefined && matchesWeakly(known, etag)) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(bytes);
  }
  app.get('/openapi.json', async (request, reply) => send(request, reply));
  return send;
}

/** Returns the document as bytes because a text would be encoded again for each response, and kept until it is read. */
function print(document: object): Served {
  const text = JSON.stringify(document);
  return { bytes: Buffer.from(text), etag: entityTagOf(text) };
}
