import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';

/** Request as received on the connection. */
export interface RawRequest {
  readonly head: string;
  readonly body: Buffer;
  /** The number of the request on this connection. The first request is 1. */
  readonly nth: number;
}

export interface ScriptedEndpoint {
  readonly port: number;
  readonly url: string;
  /** Returns the number of connections opened so far. */
  readonly connections: () => number;
  readonly requests: readonly RawRequest[];
  /** Resolves when the most recently opened connection has ended. */
  readonly lastConnectionEnded: () => Promise<void>;
  readonly closeConnections: () => void;
  readonly close: () => Promise<void>;
}

function headerLength(head: string, name: string): number {
  return Number(new RegExp(`^${name}: (\\d+)`, 'im').exec(head)?.[1] ?? 0);
}

/**
 * Starts an endpoint in which `script` can write each answer directly to the socket. Useful for answers that a normal
 * HTTP server would never send. Listens on a free loopback port.
 */
export async function startScriptedEndpoint(
  script: (socket: Socket, request: RawRequest) => void,
): Promise<ScriptedEndpoint> {
  const sockets = new Set<Socket>();
  const requests: RawRequest[] = [];
  let connections = 0;
  let lastEnd: Promise<void> = Promise.resolve();
  const server: Server = createServer(socket => {
    connections += 1;
    sockets.add(socket);
    lastEnd = new Promise(resolve => socket.once('close', () => resolve()));
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    let received: Buffer = Buffer.alloc(0);
    let nth = 0;
    socket.on('data', chunk => {
      received = Buffer.concat([received, chunk]);
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = received.toString('latin1', 0, end);
      const total = end + 4 + headerLength(head, 'content-length');
      if (received.length < total) return;
      nth += 1;
      const request = { head, body: received.subarray(end + 4, total), nth };
      received = received.subarray(total);
      requests.push(request);
      script(socket, request);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port,
    url: `http://127.0.0.1:${port}/hook`,
    connections: () => connections,
    requests,
    lastConnectionEnded: () => lastEnd,
    closeConnections() {
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Returns a complete answer that consists of a status, headers, and a text body. */
export function answer(status: number, headers: string[] = [], body = ''): string {
  const lines = [`HTTP/1.1 ${status} Scripted`, ...headers, `content-length: ${Buffer.byteLength(body)}`];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
