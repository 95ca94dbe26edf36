import { readFile } from 'node:fs/promises';
import { request as sendRequest } from 'node:http';
import { get } from 'node:https';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyServerOptions } from 'fastify';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createAuthority } from '../../test/support/certificates.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import type { Span, SpanStart, Tracing } from '../telemetry/tracing.ts';
import { traceOf, traceRequests } from './traced-requests.ts';

const TRACE_ID = '1'.repeat(32);
const PARENT = `00-${'3'.repeat(32)}-${'4'.repeat(16)}-01`;

type Ended = Parameters<Span['end']>[0];

/** Starts a server with routes for each outcome, and records its spans. */
async function start(options: { readonly https?: { readonly cert: string; readonly key: string } } = {}) {
  const spans: { readonly name: string; readonly span: SpanStart; ended?: Ended }[] = [];
  const tracing: Tracing = {
    start(name, span) {
      const recorded: (typeof spans)[number] = { name, span };
      spans.push(recorded);
      const end: Span['end'] = ended => void (recorded.ended = ended);
      return { traceId: TRACE_ID, traceparent: `00-${TRACE_ID}-${'2'.repeat(16)}-01`, end };
    },
    stop: async () => {},
  };
  const app = Fastify(options as FastifyServerOptions);
  traceRequests(app, tracing);
  const traces: object[] = [];
  app.get<{ Params: { status: string } }>('/status/:status', async (request, reply) => {
    traces.push(traceOf(request));
    return reply.code(Number(request.params.status)).send('');
  });
  app.get('/never', () => new Promise(() => {}));
  await app.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => app.close());
  return { spans, traces, url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` };
}

test('the span of a request contains its route and status, and belongs to the trace of the caller', async () => {
  const { spans, traces, url } = await start();
  await fetch(`${url}/status/204?secret=1`, { headers: { traceparent: PARENT } });
  await vi.waitFor(() => expect(spans[0]?.ended).toBeDefined());
  expect(spans).toEqual([
    {
      name: 'GET /status/:status',
      span: {
        kind: 'server',
        parent: PARENT,
        attributes: {
          'http.request.method': 'GET',
          'http.route': '/status/:status',
          'network.protocol.version': '1.1',
          'url.scheme': 'http',
        },
      },
      ended: { attributes: { 'http.response.status_code': 204 }, error: undefined },
    },
  ]);
  expect(traces).toEqual([{ traceId: TRACE_ID }]);
});

test('the span of a request over TLS has the scheme https', async () => {
  const { path } = await temporaryFolder('traced-requests');
  const { cert, key } = await (await createAuthority(path)).issue('server', 'IP:127.0.0.1');
  const { spans, url } = await start({
    https: { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') },
  });
  get(`${url.replace('http', 'https')}/status/204`, { rejectUnauthorized: false }, answer => void answer.resume());
  await vi.waitFor(() => expect(spans[0]?.ended).toBeDefined());
  expect(spans[0]?.span.attributes).toMatchObject({ 'url.scheme': 'https' });
});

test.each([
  ['400', undefined],
  ['500', '500'],
  ['503', '503'],
])('a request with the status %s has the error %s', async (status, error) => {
  const { spans, url } = await start();
  await fetch(`${url}/status/${status}`);
  await vi.waitFor(() => expect(spans[0]?.ended).toBeDefined());
  expect(spans[0]?.ended?.error).toBe(error);
});

test('a request without a route has no path in its span, and an aborted request has no status', async () => {
  const { spans, url } = await start();
  await fetch(`${url}/orders/order-4711`);
  expect(JSON.stringify(spans)).not.toContain('order-4711');
  const request = sendRequest(`${url}/never`).on('error', () => {});
  request.end();
  await vi.waitFor(() => expect(spans).toHaveLength(2));
  request.destroy();
  await vi.waitFor(() => expect(spans[1]?.ended).toEqual({ error: 'aborted' }));
});
