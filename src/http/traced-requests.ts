import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseTraceparent, type Tracing } from '../telemetry/tracing.ts';

/**
 * Starts a server span for every request, which becomes part of the caller's trace. We replace the `traceparent` header
 * on the request so that stored events and log lines use the new span. You must call this before you add any other
 * hooks.
 */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  app.addHook('onRequest', async (request, reply) => {
    const { headers } = request.raw;
    const { url } = request.routeOptions;
    const parent = headers['traceparent'];
    const span = tracing.start(url === undefined ? request.method : `${request.method} ${url}`, {
      kind: 'server',
      parent: typeof parent === 'string' ? parent : undefined,
      attributes: {
        'http.request.method': request.method,
        'url.scheme': request.protocol,
        'network.protocol.version': request.raw.httpVersion,
        // Paths contain the producer's event ids, so only record the template.
        ...(url === undefined ? {} : { 'http.route': url }),
      },
    });
    headers['traceparent'] = span.traceparent;
    reply.raw.once('close', () => {
      const { statusCode, writableFinished } = reply.raw;
      if (!writableFinished) return span.end({ error: 'aborted' });
      const error = statusCode >= 500 ? `${statusCode}` : undefined;
      span.end({ attributes: { 'http.response.status_code': statusCode }, error });
    });
  });
}

/** Returns a request's trace id. Can be used in log lines. */
export function traceOf({ headers }: Pick<FastifyRequest, 'headers'>): { readonly traceId?: string } {
  const traceId = parseTraceparent(headers.traceparent as string | undefined)?.traceId;
  return traceId === undefined ? {} : { traceId };
}
