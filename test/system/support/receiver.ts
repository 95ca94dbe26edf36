import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually, pauseFrom } from './deadline.ts';

/** An attempt, as received by the partner. */
export interface Attempt {
  /** The path of the endpoint without its slash, which identifies the subscription. */
  readonly subscription: string;
  /** The `webhook-id`. */
  readonly id: string;
  readonly groupKey: string;
  readonly sha256: string;
  readonly headers: IncomingMessage['headers'];
  /** The number of previous attempts for this subscription. */
  readonly sequence: number;
  /** The time at which the body was received, using `performance.now()`. */
  readonly atMs: number;
  /** The number of times that this subscription has received the id before. */
  readonly earlier: number;
}

/**
 * The response of the partner to an attempt. With `lost`, the partner processes the event and closes the connection
 * before the response.
 */
export type Answer =
  | number
  | 'lost'
  | { readonly status: number; readonly afterMs: number }
  | { readonly status: number; readonly after: Promise<unknown> };

export type Recorded = Attempt & {
  /** The response's status. Undefined if there is no response yet, or if there will never be one. */
  readonly status: number | 'lost' | undefined;
  /** The time at which the response was passed to the operating system. */
  readonly answeredMs: number | undefined;
};

export interface Receiver {
  /** Returns the URL of a subscription's endpoint. */
  readonly urlOf: (subscription: string) => string;
  /** All attempts in the order of arrival, for all subscriptions. */
  readonly attempts: readonly Recorded[];
  /** The number of accepted connections. */
  readonly connections: () => number;
  /** Returns the distinct ids of a subscription that received a 2xx response. */
  readonly delivered: (subscription: string) => ReadonlySet<string>;
  /**
   * Waits until the subscription's event has received a 2xx response. Fails after `withinMs` (defaults to 60
   * seconds).
   */
  readonly arrival: (id: string, subscription: string, withinMs?: number) => ReturnType<typeof eventually>;
  /** Sets the behavior for new attempts, which is initially 204. */
  readonly behave: (script: (attempt: Attempt) => Answer) => void;
  readonly clear: () => void;
  readonly close: () => Promise<void>;
}

/** The requests received by the receiver, and its responses. */
function createRecord() {
  const attempts: (Attempt & { status: Recorded['status']; answeredMs: number | undefined })[] = [];
  const delivered = new Map<string, Set<string>>();
  const counts = new Map<string, number>();
  const seen = new Map<string, number>();

  function count(counter: Map<string, number>, key: string): number {
    const before = counter.get(key) ?? 0;
    counter.set(key, before + 1);
    return before;
  }

  function deliveredTo(subscription: string): Set<string> {
    let ids = delivered.get(subscription);
    if (ids === undefined) delivered.set(subscription, (ids = new Set()));
    return ids;
  }

  return {
    attempts,
    deliveredTo,
    add({ url = '/', headers }: IncomingMessage, body: Buffer): (typeof attempts)[number] {
      const subscription = url.slice(1);
      const id = String(headers['webhook-id']);
      const attempt = {
        subscription,
        id,
        groupKey: decodeURIComponent(String(headers['ce-partitionkey'] ?? '')),
        sha256: createHash('sha256').update(body).digest('hex'),
        headers,
        sequence: count(counts, subscription),
        atMs: performance.now(),
        earlier: count(seen, `${subscription}\n${id}`),
        status: undefined,
        answeredMs: undefined,
      };
      attempts.push(attempt);
      return attempt;
    },
    clear(): void {
      attempts.length = 0;
      for (const each of [delivered, counts, seen]) each.clear();
    },
  };
}

/** Starts a partner's endpoints on one loopback port. It records every attempt and responds according to `behave`. */
export async function startReceiver(): Promise<Receiver> {
  const record = createRecord();
  let connections = 0;
  let script: (attempt: Attempt) => Answer = () => 204;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const attempt = record.add(request, await buffer(request));
    const scripted = script(attempt);
    if (typeof scripted === 'object') await ('after' in scripted ? scripted.after : delay(scripted.afterMs));
    const status = typeof scripted === 'object' ? scripted.status : scripted;
    if (status === 'lost') request.socket.destroy();
    else response.writeHead(status, { 'content-length': 0 }).end();
    attempt.status = status;
    attempt.answeredMs = performance.now();
    if (status !== 'lost' && status >= 200 && status < 300) record.deliveredTo(attempt.subscription).add(attempt.id);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => {
      // The sender crashed during its request, so no event was received.
    });
  });
  server.on('connection', () => connections++);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: subscription => `http://127.0.0.1:${port}/${subscription}`,
    attempts: record.attempts,
    connections: () => connections,
    delivered: record.deliveredTo,
    arrival: (id, subscription, withinMs = 60_000) =>
      eventually(`${id} is delivered to ${subscription}`, async () => record.deliveredTo(subscription).has(id), {
        withinMs,
        everyMs: pauseFrom(2, 20),
      }),
    behave: next => {
      script = next;
    },
    clear: () => record.clear(),
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
