import type { FastifyInstance } from 'fastify';
import type { Tracing } from '../telemetry/tracing.ts';

/**
 * A server span for each request, which continues the caller's trace. Whatever reads the request's `traceparent` after
 * this sees the span's own: an event is stored with it, a log line names its trace. To be called before any other hook.
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
        // The template alone: paths hold ids of events, which are the producer's.
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
