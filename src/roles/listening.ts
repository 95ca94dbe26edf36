import { createServer } from 'node:net';
import { ConfigError } from '../config/config.ts';

/** Returns the address that represents all addresses of this machine: `::`, or `0.0.0.0` if IPv6 is not enabled. */
export async function anyAddress(): Promise<string> {
  const probe = createServer();
  try {
    // Without an address, Node tries `::` first.
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

/**
 * Listens on the port configured by a variable.
 * @throws ConfigError if the port is in use or requires more permissions, or if the machine lacks the address
 */
export async function listenAt<T>(variable: string, port: number, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new ConfigError(`${variable}: port ${port} is already in use. Stop the other process or set another port`);
    }
    if (code === 'EACCES') {
      throw new ConfigError(`${variable}: port ${port} requires administrator permissions. Set a port above 1023`);
    }
    if (code === 'EADDRNOTAVAIL') {
      const { address } = error as NodeJS.ErrnoException & { address?: string };
      const host = variable.replace(/_PORT$/, '_HOST');
      throw new ConfigError(`${host}: ${address} is not an address of this machine. Set one of its addresses`);
    }
    throw error;
  }
}
