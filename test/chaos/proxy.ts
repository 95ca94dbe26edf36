import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy before a Redis, which can hold its answers and pushes back for a while. */
export interface Proxy {
  readonly url: string;
  /** What Redis sends from now on arrives so much later, in order; 0: at once, but not before what was sent earlier. */
  readonly delay: (ms: number) => void;
  readonly stop: () => void;
}

/** Starts a proxy before the Redis on a loopback port. */
export async function startProxy(redisPort: number): Promise<Proxy> {
  const open = new Set<Socket>();
  let delayMs = 0;

  function join(client: Socket): void {
    const upstream = connect({ port: redisPort, host: '127.0.0.1', noDelay: true });
    let dueMs = 0;
    const end = () => {
      for (const socket of [client, upstream]) {
        open.delete(socket);
        socket.destroy();
      }
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', end).on('close', end);
    }
    client.on('data', data => upstream.write(data));
    upstream.on('data', data => {
      const nowMs = performance.now();
      dueMs = Math.max(dueMs, nowMs + delayMs);
      if (dueMs <= nowMs) client.write(data);
      else setTimeout(() => client.destroyed || client.write(data), Math.ceil(dueMs - nowMs));
    });
  }

  const server = createServer({ noDelay: true }, join);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    delay(ms) {
      delayMs = ms;
    },
    stop() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
