import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from './metrics.ts';

// An import would evaluate all exports, and one of them loads the WebSocket client of Node. Loading it takes 50 ms.
const { createServer } = process.getBuiltinModule('node:http');

/** Returns the health of a part of the process, in the same format as `/readyz`. */
type HealthCheck = () => {
  readonly ready: boolean;
  readonly impairments: readonly { readonly message: string }[];
};

export interface OpsServer {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/**
 * Serves `/metrics` (in Prometheus text format), `/healthz` (200 while the process is running), and `/readyz` (200 if
 * its roles have worked and their settings are valid, 503 otherwise). The response of `/readyz` always lists all
 * impairments, one per line. Does not depend on the status.
 *
 * @param host IP address to listen at. If undefined, it listens on all addresses
 */
export async function startOpsServer(
  { host, port }: { readonly host: string | undefined; readonly port: number },
  registry: Registry,
  checks: Readonly<Record<string, HealthCheck>>,
): Promise<OpsServer> {
  const server: Server = createServer((request, response) => {
    const path = request.url?.split('?')[0];
    const answer = (status: number, body: string, type = 'text/plain; charset=utf-8') => {
      response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      answer(405, 'method not allowed, use GET or HEAD\n');
    } else if (path === '/metrics') {
      registry.metrics().then(
        text => answer(200, text, registry.contentType),
        () => answer(500, 'cannot collect metrics\n'),
      );
    } else if (path === '/healthz') answer(200, 'ok\n');
    else if (path === '/readyz') {
      const states = Object.entries(checks).map(([name, check]) => ({ name, ...check() }));
      const ready = states.every(state => state.ready);
      const lines = states.flatMap(({ name, impairments }) => impairments.map(({ message }) => `${name}: ${message}`));
      answer(ready ? 200 : 503, `${[...(ready ? ['ok'] : []), ...lines].join('\n')}\n`);
    } else answer(404, 'path not found, use /metrics, /healthz or /readyz\n');
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host }, resolve);
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
