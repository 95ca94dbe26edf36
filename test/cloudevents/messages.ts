import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A transmitted request: names in lower case, values with one character per byte, in order. */
export interface Message {
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

export interface Tap {
  readonly url: string;
  /** All requests so far, in order. */
  readonly messages: readonly Message[];
  readonly close: () => Promise<void>;
}

function pairs(rawHeaders: readonly string[]): [string, string][] {
  const found: [string, string][] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    found.push([(rawHeaders[at] as string).toLowerCase(), rawHeaders[at + 1] as string]);
  }
  return found;
}

/** Sends a message, with these headers before its own headers. @returns the status and body of the response */
export async function send(
  url: string,
  headers: readonly (readonly [string, string])[],
  body: Buffer,
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(url, { method: 'POST' }, answer => {
      buffer(answer).then(bytes => resolve({ status: answer.statusCode ?? 0, body: bytes.toString() }), reject);
    });
    outgoing.on('error', reject);
    for (const [name, value] of headers) outgoing.setHeader(name, value);
    outgoing.end(body);
  });
}

/** Headers of the connection, which are not part of the message. */
const OF_CONNECTION = new Set(['host', 'connection', 'keep-alive', 'transfer-encoding', 'content-length', 'te']);

/** Headers that are always included in a message. */
export function endToEnd({ headers }: Message): (readonly [string, string])[] {
  return headers.filter(([name]) => !OF_CONNECTION.has(name));
}

/**
 * Starts a server that records each request and forwards it to `target` with its original headers. Without a target, it
 * responds with 204.
 */
export async function startTap(target?: string): Promise<Tap> {
  const messages: Message[] = [];
  const server = createServer((incoming, response) => {
    void (async () => {
      const message = { headers: pairs(incoming.rawHeaders), body: await buffer(incoming) };
      messages.push(message);
      if (target === undefined) return response.writeHead(204).end();
      const answer = await send(target, endToEnd(message), message.body);
      return response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
    })().catch(error => response.destroy(error as Error));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    messages,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
