import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from './metrics.ts';

/** One thing that has to be true before the process is ready; answers why it is not. */
export type ReadinessCheck = () => string | undefined;

export interface OpsServer {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/**
 * `/metrics` (Prometheus text format), `/healthz` (the process answers) and `/readyz` (its roles work; 503 names what
 * is missing, one line each).
 */
export async function startOpsServer(
  port: number,
  registry: Registry,
  checks: Readonly<Record<string, ReadinessCheck>>,
): Promise<OpsServer> {
  const server: Server = createServer((request, response) => {
    const path = request.url?.split('?')[0];
    const answer = (status: number, body: string, type = 'text/plain; charset=utf-8') => {
      response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      answer(405, 'only GET\n');
    } else if (path === '/metrics') {
      registry.metrics().then(
        text => answer(200, text, registry.contentType),
        () => answer(500, 'metrics could not be collected\n'),
      );
    } else if (path === '/healthz') answer(200, 'ok\n');
    else if (path === '/readyz') {
      const missing = Object.entries(checks).flatMap(([name, check]) => {
        const why = check();
        return why === undefined ? [] : [`${name}: ${why}`];
      });
      answer(missing.length === 0 ? 200 : 503, `${missing.length === 0 ? 'ok' : missing.join('\n')}\n`);
    } else answer(404, 'there are /metrics, /healthz and /readyz\n');
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
