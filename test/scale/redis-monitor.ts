import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

/** Called for each command. `source` is the address of a client, or `lua`. */
export type Heard = (args: readonly string[], source: string) => void;

/** A line of `MONITOR`: the time, the database, the source, and each argument in quotes. */
const LINE = /^\+[\d.]+ \[\d+ (?<source>[^\]]+)\] "(?<args>.*)"$/u;

/**
 * Reports all commands that a Redis server without a password receives, until the returned function is called.
 * Uses its own connection because `monitor()` of ioredis drops commands that arrive together with the response to
 * `MONITOR`.
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
    socket.once('close', () => reject(new Error(`Redis at ${url} closed the monitoring connection`)));
  });
  lines.on('line', line => {
    if (line === '+OK') return answered();
    const { args, source } = LINE.exec(line)?.groups ?? {};
    if (args === undefined || source === undefined) throw new Error(`Redis responded to MONITOR with ${line}`);
    heard(args.split('" "'), source);
  });
  socket.write('MONITOR\r\n');
  await listening;
  return () => {
    lines.close();
    socket.destroy();
  };
}
