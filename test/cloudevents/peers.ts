import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { startChild } from '../support/child-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** An extension with a CloudEvents type. For `binary`, `value` is base64, and for `timestamp`, it is RFC 3339. */
export interface Extension {
  readonly type: 'string' | 'boolean' | 'integer' | 'binary' | 'uri' | 'urireference' | 'timestamp';
  readonly value: string | boolean | number;
}

export type Data = { readonly json: object } | { readonly text: string } | { readonly base64: string };

/** An event's description, for every SDK. */
export interface Described {
  readonly attributes: Readonly<Record<string, string>>;
  readonly extensions?: Readonly<Record<string, Extension>>;
  readonly data?: Data;
}

export type Mode = 'binary' | 'structured' | 'batch';

/** The event that a producer should send. */
export interface Order {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly mode: Mode;
  readonly event: Described;
}

/** The response to the producer. `unsendable`: the SDK created a request that its HTTP client refuses. */
export type Produced = { readonly status: number; readonly body: string } | { readonly unsendable: string };

/** An event as read by the SDK of a receiver: attributes as text, and data in the format of the SDK. */
export type Reading =
  | { readonly attributes: Readonly<Record<string, string>>; readonly data: Data | null }
  | { readonly error: string };

/** A producer and a receiver that use the same SDK. */
export interface Peer {
  /** The URL for deliveries. Paths below it can be used, too. */
  readonly url: string;
  readonly produce: (order: Order) => Promise<Produced>;
  /**
   * The event that the SDK has read from the delivery with this `webhook-id`, or undefined if it has not arrived yet.
   */
  readonly read: (id: string) => Promise<Reading | undefined>;
  readonly close: () => Promise<void>;
}

const ROOT = join(import.meta.dirname, '..', '..');
const CACHE = join(ROOT, '.cache', 'cloudevents');

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  /** A file that exists if the program can be started. */
  readonly needs: string;
}

/** The SDKs of other languages, as installed by `make setup`. */
export const PROGRAMS = {
  Python: {
    command: join(CACHE, 'python', 'bin', 'python'),
    args: [join(import.meta.dirname, 'python', 'peer.py')],
    needs: join(CACHE, 'python', 'requirements.txt'),
  },
  Go: { command: join(CACHE, 'go-peer'), args: [], needs: join(CACHE, 'go-peer') },
} as const satisfies Record<string, Program>;

export type ProgramName = keyof typeof PROGRAMS;

/** Returns the reason why the SDK can't be tested here, or undefined if it can be tested. */
export function missing(name: ProgramName): string | undefined {
  return existsSync(PROGRAMS[name].needs) ? undefined : `there is no SDK for ${name}; run make setup`;
}

/** Starts a peer as a separate program. */
export async function startProgram(name: ProgramName): Promise<Peer> {
  const { command, args } = PROGRAMS[name];
  const folder = await temporaryFolder('cloudevents');
  const child = startChild({ command, args, log: join(folder.path, 'log') });
  const port = async () => /^port (\d+)$/m.exec(await child.logTail())?.[1];
  while ((await port()) === undefined) {
    if (!child.running()) throw new Error(`the peer in ${name} ended: ${await child.logTail()}`);
    await delay(20);
  }
  const url = `http://127.0.0.1:${await port()}`;
  return {
    url: `${url}/receive`,
    async produce(order) {
      const answer = await request(`${url}/produce`, { method: 'POST', body: JSON.stringify(order) });
      return (await answer.body.json()) as Produced;
    },
    async read(id) {
      const answer = await request(`${url}/read?id=${encodeURIComponent(id)}`);
      if (answer.statusCode === 200) return (await answer.body.json()) as Reading;
      await answer.body.dump();
      return undefined;
    },
    async close() {
      await child.stop();
      await folder.remove();
    },
  };
}
