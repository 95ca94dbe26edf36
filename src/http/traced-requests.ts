import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseTraceparent, type Tracing } from '../telemetry/tracing.ts';

/**
 * Starts a server span for each request as part of the caller's trace. The `traceparent` header of the request is
 * replaced so that stored events and log lines use the new span. This must be called before other hooks are added.
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
        'url.scheme': 'http',
        'network.protocol.version': request.raw.httpVersion,
        // Record only the template because the paths contain the event ids of the producer.
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

/** Returns the trace id of a request for use in a log line. */
export function traceOf({ headers }: FastifyRequest): { readonly traceId?: string } {
  const traceId = parseTraceparent(headers.traceparent as string | undefined)?.traceId;
  return traceId === undefined ? {} : { traceId };
}
