import { createServer } from 'node:net';
import { ConfigError } from '../config/config.ts';

/** Returns the address for all addresses of this machine: `::`, or `0.0.0.0` if IPv6 is turned off. */
export async function anyAddress(): Promise<string> {
  const probe = createServer();
  try {
    // Without an address Node tries `::` first.
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject);
      probe.listen({ port: 0 }, resolve);
    });
    const at = probe.address();
    return typeof at === 'object' && at?.family === 'IPv4' ? '0.0.0.0' : '::';
  } finally {
    probe.close();
  }
}

/** Listens at the port of a variable. @throws ConfigError if the port is taken or needs more rights */
export async function listenAt<T>(variable: string, port: number, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new ConfigError(`${variable}: port ${port} is taken by another process; stop it, or set another port`);
    }
    if (code === 'EACCES') {
      throw new ConfigError(`${variable}: port ${port} needs administrator rights; set one above 1023`);
    }
    throw error;
  }
}
