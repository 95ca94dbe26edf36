import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy in front of Redis, which can delay its responses and pushes. */
export interface Proxy {
  readonly url: string;
  /**
   * Delays all new data from Redis by this time, without changing the order. With 0, data is only delayed by earlier
   * data.
   */
  readonly delay: (ms: number) => void;
  /** Connects new clients to another Redis on loopback. */
  readonly forwardTo: (redisPort: number) => void;
  /** Loses all further data of the open connections without closing them, like a network that loses all packets. */
  readonly hang: () => void;
  readonly stop: () => void;
}

/** Starts a proxy for the Redis on a loopback port. */
export async function startProxy(redisPort: number): Promise<Proxy> {
  const open = new Set<Socket>();
  const hanging = new WeakSet<Socket>();
  let delayMs = 0;
  let port = redisPort;

  function join(client: Socket): void {
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true });
    const late: { readonly data: Buffer; readonly dueMs: number }[] = [];
    let timer: NodeJS.Timeout | undefined;
    /** Forwards data in order because timers with different durations are not ordered. */
    const pass = () => {
      timer = undefined;
      const nowMs = performance.now();
      while (late[0] !== undefined && late[0].dueMs <= nowMs) client.write((late.shift() as { data: Buffer }).data);
      if (late[0] !== undefined) timer = setTimeout(pass, Math.max(1, late[0].dueMs - nowMs));
    };
    const end = () => {
      clearTimeout(timer);
      for (const socket of [client, upstream]) {
        open.delete(socket);
        socket.destroy();
      }
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', end).on('close', end);
    }
    const isHanging = () => hanging.has(client);
    client.on('data', data => {
      if (!isHanging()) upstream.write(data);
    });
    upstream.on('data', data => {
      if (isHanging()) return;
      late.push({ data, dueMs: Math.max(late.at(-1)?.dueMs ?? 0, performance.now() + delayMs) });
      if (timer === undefined) pass();
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
    forwardTo(redisPort) {
      port = redisPort;
    },
    hang() {
      for (const socket of open) hanging.add(socket);
    },
    stop() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
