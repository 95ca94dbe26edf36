import { Agent, request } from 'node:http';
import type { Answers, FloodRequest } from './messages.ts';

/** A timeout that is longer than any call may take. */
const PATIENCE_MS = 45_000;

/** Sends requests to one server using a limited number of persistent connections. */
export interface Client {
  /** Resolves with the status and the problem code, e.g. `429 rate_limited`, or `none` if there was no response. */
  readonly send: (sent: FloodRequest) => Promise<string>;
  /** Closes all connections, including connections waiting for a response. */
  readonly close: () => void;
}

export function createClient(url: string, connections: number): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const { hostname, port } = new URL(url);
  return {
    send: ({ method, path, headers, body }) =>
      new Promise(resolve => {
        const length = body === undefined ? {} : { 'content-length': `${Buffer.byteLength(body)}` };
        const outgoing = request({ agent, hostname, port, method, path, headers: { ...headers, ...length } });
        outgoing.setTimeout(PATIENCE_MS, () => outgoing.destroy());
        outgoing.on('response', incoming => {
          const isProblem = (incoming.statusCode ?? 0) >= 400;
          let text = '';
          incoming.on('data', (chunk: Buffer) => {
            if (isProblem) text += chunk.toString();
          });
          incoming.on('close', () => resolve(`${incoming.statusCode} ${codeOf(text)}`.trim()));
        });
        outgoing.on('error', () => resolve('none'));
        outgoing.end(body);
      }),
    close: () => agent.destroy(),
  };
}

function codeOf(text: string): string {
  return /"code":"(\w+)"/.exec(text)?.[1] ?? '';
}

/** Counts responses. */
export function createTally() {
  const answers: Record<string, number> = {};
  return {
    add: (answer: string) => {
      answers[answer] = (answers[answer] ?? 0) + 1;
    },
    answers: answers as Answers,
  };
}
