import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Arrival, SUBSCRIPTIONS, type Subscription } from './record.ts';

/** The maximum response time, which is used so that there are always requests in progress. */
const LONGEST_ANSWER_MS = 10;

/** The endpoints of all subscriptions. */
export interface Sink {
  readonly ports: Readonly<Record<Subscription, number>>;
  /** All requests, in the order of their arrival. */
  readonly arrivals: readonly Arrival[];
  readonly stop: () => void;
}

/**
 * Starts endpoints that record every delivery and return 204 some milliseconds later. `random` returns a number between
 * 0 and 1.
 */
export async function startSink(random: () => number): Promise<Sink> {
  const arrivals: Arrival[] = [];

  async function start(subscription: Subscription): Promise<Server> {
    const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      request.resume();
      request.on('end', () => {
        const text = (name: string) => String(request.headers[name]);
        const atMs = performance.now();
        arrivals.push({ subscription, id: text('webhook-id'), key: text('x-sluice-group-key'), atMs });
        setTimeout(() => response.writeHead(204).end(), random() * LONGEST_ANSWER_MS);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }

  const servers = await Promise.all(SUBSCRIPTIONS.map(start));
  const ports = servers.map(server => (server.address() as AddressInfo).port);
  return {
    ports: Object.fromEntries(SUBSCRIPTIONS.map((name, at) => [name, ports[at]])) as Record<Subscription, number>,
    arrivals,
    stop() {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}
