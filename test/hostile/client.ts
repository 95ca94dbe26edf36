import { Agent, request } from 'node:http';
import { request as requestTls, Agent as TlsAgent } from 'node:https';
import type { Answers, FloodRequest } from './messages.ts';

/** A timeout that is longer than any call may take. */
const PATIENCE_MS = 45_000;

/** Sends requests to one server using a limited number of persistent connections. */
export interface Client {
  /**
   * Resolves with the status and the problem code, e.g. `429 rate_limited`, or `none` if there was no response. Repeats
   * the request once on a new connection if a persistent connection was closed before the response.
   */
  readonly send: (sent: FloodRequest) => Promise<string>;
  /** Closes all connections, including connections waiting for a response. */
  readonly close: () => void;
}

export function createClient(url: string, connections: number): Client {
  const { protocol, hostname, port } = new URL(url);
  const isTls = protocol === 'https:';
  const keep = { keepAlive: true, maxSockets: connections };
  const agent = isTls ? new TlsAgent({ ...keep, rejectUnauthorized: false }) : new Agent(keep);
  const start = isTls ? requestTls : request;
  let isClosed = false;

  function send(sent: FloodRequest, mayRepeat: boolean): Promise<string> {
    const { method, path, headers, body } = sent;
    return new Promise(resolve => {
      const length = body === undefined ? {} : { 'content-length': `${Buffer.byteLength(body)}` };
      // All other persistent connections may have been closed as well.
      const via = mayRepeat ? { agent } : { agent: false as const, rejectUnauthorized: false };
      const outgoing = start({ ...via, hostname, port, method, path, headers: { ...headers, ...length } });
      let isLate = false;
      outgoing.setTimeout(PATIENCE_MS, () => {
        isLate = true;
        outgoing.destroy();
      });
      outgoing.on('response', incoming => {
        const isProblem = (incoming.statusCode ?? 0) >= 400;
        let text = '';
        incoming.on('data', (chunk: Buffer) => {
          if (isProblem) text += chunk.toString();
        });
        incoming.on('close', () => resolve(`${incoming.statusCode} ${codeOf(text)}`.trim()));
      });
      outgoing.on('error', () => {
        // The server may have closed the connection before the request arrived.
        const repeats = mayRepeat && outgoing.reusedSocket && !isLate && !isClosed;
        resolve(repeats ? send(sent, false) : 'none');
      });
      outgoing.end(body);
    });
  }

  return {
    send: sent => send(sent, true),
    close() {
      isClosed = true;
      agent.destroy();
    },
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
