import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the ranges from which Linux (32768) and macOS (49152) hand out ports to outgoing connections: a server that is
 * killed and started again finds its port free.
 */
const FIRST = 20_000;
const LAST = 32_000;

const chosen = new Set<number>();

function canListen(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** A free loopback TCP port, never the same twice in one process. @throws when 100 random ones were all taken */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = randomInt(FIRST, LAST);
    if (chosen.has(port)) continue;
    chosen.add(port);
    if (await canListen(port)) return port;
  }
  throw new Error(`no free port between ${FIRST} and ${LAST} on 127.0.0.1`);
}

/** As many different free loopback ports as asked for. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}
