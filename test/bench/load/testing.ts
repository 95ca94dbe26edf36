import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startChild, waitUntilReady } from '../../support/child-process.ts';
import { freePort } from '../../support/free-port.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { sendCommand } from '../commands.ts';
import { buildLoad } from './build.ts';

/** The time to build the program if it has not been built before. */
export const BUILD_MS = 600_000;

export interface LoadProcess {
  readonly send: <T>(command: string, input?: object) => Promise<T>;
  readonly stop: () => Promise<void>;
}

/** Starts the generator, or the receiver with an endpoint for each port. */
export async function startLoad(name: 'generator' | 'receiver', ports: readonly number[] = []): Promise<LoadProcess> {
  const command = await buildLoad();
  const folder = await temporaryFolder('load');
  const port = await freePort();
  const child = startChild({ command, args: [name, ...[port, ...ports].map(String)], log: join(folder.path, 'log') });
  const probe = () => openSocket(port).then(socket => socket.destroy() !== undefined);
  await waitUntilReady(child, probe, { name, deadlineMs: 60_000 });
  return {
    send: (command, input) => sendCommand(port, command, input),
    async stop() {
      await child.stop();
      await folder.remove();
    },
  };
}

export async function openSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await new Promise((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

/** Returns the time of the monotonic clock in µs. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

export interface BenchEvent {
  readonly run: number;
  readonly sent: number;
  readonly key: number;
  readonly n: number;
}

/** Returns the body of an event. */
export function bodyOf({ run, sent, key, n }: BenchEvent): string {
  const digits = (value: number, width: number) => String(value).padStart(width, '0');
  const head = `{"run":"${digits(run, 5)}","sent":"${digits(sent, 15)}","key":"${digits(key, 3)}","n":"${digits(n, 8)}","pad":"`;
  return `${head}${'x'.repeat(1_024 - head.length - 2)}"}`;
}

/** Writes the parts with a delay, so that each one is read separately. */
export async function writeParts(socket: Socket, parts: readonly string[]): Promise<void> {
  for (const part of parts) {
    socket.write(part);
    await delay(5);
  }
}
