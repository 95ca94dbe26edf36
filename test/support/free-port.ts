import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * The range of ports below the ephemeral ports of Linux (from 32768) and macOS (from 49152), so that the port of a
 * server that is killed and restarted is still free.
 */
const FIRST = 20_000;
const LAST = 32_000;

const chosen = new Set<number>();

/**
 * Chooses a port for this process until it ends, by an abstract socket that other processes can't use then. Without it,
 * another process could choose the port before a server listens on it, or while the server is restarted.
 */
function claim(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return Promise.resolve(true);
  return new Promise(resolve => {
    const server = createServer().unref();
    server.once('error', () => resolve(false));
    server.listen(`\0sluice-test-port-${port}`, () => resolve(true));
  });
}

function canListen(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * Returns a free loopback TCP port that no running process has chosen before.
 * @throws if 100 random ports are in use
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = randomInt(FIRST, LAST);
    if (chosen.has(port)) continue;
    chosen.add(port);
    if ((await claim(port)) && (await canListen(port))) return port;
  }
  throw new Error(`no free port between ${FIRST} and ${LAST} on 127.0.0.1`);
}

/** Returns `count` different free loopback ports. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}
