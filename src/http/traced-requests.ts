import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseTraceparent, type Tracing } from '../telemetry/tracing.ts';

/**
 * Opens a server span for each request, which continues the caller's trace. It replaces the request's `traceparent`
 * with its own: stored events and log lines use that. Call it before any other hook.
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
        // Record only the template: paths contain the producer's event ids.
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

/** Returns the trace id of a request, for a log line. */
export function traceOf({ headers }: FastifyRequest): { readonly traceId?: string } {
  const traceId = parseTraceparent(headers.traceparent as string | undefined)?.traceId;
  return traceId === undefined ? {} : { traceId };
}
