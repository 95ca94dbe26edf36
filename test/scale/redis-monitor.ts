import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

/** A command that a Redis was asked for; `source` is the address of a client, or `lua`. */
export type Heard = (args: readonly string[], source: string) => void;

/** A line of `MONITOR`: time, database, source, then each argument in quotes. */
const LINE = /^\+[\d.]+ \[\d+ (?<source>[^\]]+)\] "(?<args>.*)"$/u;

/**
 * Listens to all that one Redis without a password is asked for, until the returned function is called.
 *
 * It speaks to Redis by itself: `monitor()` of ioredis throws what it reads together with the answer to `MONITOR`.
 */
export async function monitorRedis(url: string, heard: Heard): Promise<() => void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const lines = createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY });
  let answered: () => void;
  const listening = new Promise<void>((resolve, reject) => {
    answered = resolve;
    socket.once('error', reject);
    socket.once('close', () => reject(new Error(`Redis at ${url} closed the connection that monitors it`)));
  });
  lines.on('line', line => {
    if (line === '+OK') return answered();
    const { args, source } = LINE.exec(line)?.groups ?? {};
    if (args === undefined || source === undefined) throw new Error(`Redis answered MONITOR with ${line}`);
    heard(args.split('" "'), source);
  });
  socket.write('MONITOR\r\n');
  await listening;
  return () => {
    lines.close();
    socket.destroy();
  };
}
