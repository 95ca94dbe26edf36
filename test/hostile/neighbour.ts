import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../bench/report/statistics.ts';
import { createClient, createTally } from './client.ts';
import type { FloodRequest, Latencies, NeighbourFigures, NeighbourSettings } from './messages.ts';

/**
 * The process of the tenant that must not be affected. It publishes events, reads, and makes changes at a
 * constant rate, receives its own deliveries, and measures them. Its first message contains the port of its endpoint.
 */

const EVENT_EVERY_MS = 10;
const READ_EVERY_MS = 50;
const CHANGE_EVERY_MS = 250;
/** The maximum time to wait for accepted events to arrive. */
const ARRIVAL_MS = 10_000;

const arrivedMs = new Map<string, number>();
const server = createServer((request, response) => {
  arrivedMs.set(String(request.headers['webhook-id']), performance.now());
  request.resume();
  response.writeHead(204).end();
});

let count = 0;

/** Calls `act` every `everyMs` until `untilMs`, without waiting for earlier calls. Returns all results. */
async function repeat<T>(everyMs: number, untilMs: number, act: () => Promise<T>): Promise<T[]> {
  const results: Promise<T>[] = [];
  for (let dueMs = performance.now(); dueMs < untilMs; dueMs += everyMs) {
    await delay(Math.max(0, dueMs - performance.now()));
    results.push(act());
  }
  return Promise.all(results);
}

function latenciesOf(timed: readonly { readonly answer: string; readonly tookMs: number }[]): Latencies {
  const tally = createTally();
  for (const { answer } of timed) tally.add(answer);
  const times = timed.map(({ tookMs }) => tookMs);
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), answers: tally.answers };
}

function createNeighbour(settings: NeighbourSettings) {
  const { facadeUrl, ingressUrl, eventsPath, ingressKey, groupKey, token, tenant, stream } = settings;
  const [facade, ingress] = [createClient(facadeUrl, 32), createClient(ingressUrl, 32)];
  const rest = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const reads: FloodRequest[] = [
    { method: 'GET', path: `/waas/producer/${tenant}/catalog`, headers: rest },
    { method: 'GET', path: `/waas/producer/${tenant}/integrations`, headers: rest },
    { method: 'GET', path: `/waas/producer/${tenant}/explain?stream=${stream}&groupKey=${groupKey}`, headers: rest },
  ];

  async function timed(send: () => Promise<string>) {
    const startedMs = performance.now();
    const answer = await send();
    return { answer, tookMs: performance.now() - startedMs };
  }

  const read = () => timed(() => facade.send(reads[count++ % reads.length] as FloodRequest));
  const change = () => {
    const body = JSON.stringify({
      producerTenantPublicId: tenant,
      name: stream,
      description: `change ${count++}`,
      isPublic: true,
    });
    return timed(() => facade.send({ method: 'PUT', path: '/waas/streams', headers: rest, body }));
  };
  async function publish() {
    const id = `event-${count++}`;
    const headers = {
      authorization: `Bearer ${ingressKey}`,
      'content-type': 'application/json',
      'webhook-id': id,
      'x-sluice-group-key': groupKey,
      'x-forwarded-for': '203.0.113.9',
    };
    const answer = await ingress.send({ method: 'POST', path: eventsPath, headers, body: '{"hello":"world"}' });
    return { id, answer, acceptedMs: performance.now() };
  }

  return async (forMs: number): Promise<NeighbourFigures> => {
    const untilMs = performance.now() + forMs;
    const [ofReads, ofChanges, published] = await Promise.all([
      repeat(READ_EVERY_MS, untilMs, read),
      repeat(CHANGE_EVERY_MS, untilMs, change),
      repeat(EVENT_EVERY_MS, untilMs, publish),
    ]);
    const accepted = published.filter(({ answer }) => answer === '202');
    const giveUpMs = performance.now() + ARRIVAL_MS;
    const isHere = ({ id }: { readonly id: string }) => arrivedMs.has(id);
    while (!accepted.every(isHere) && performance.now() < giveUpMs) await delay(10);
    const deliveries = published.map(({ id, answer, acceptedMs }) => ({
      answer,
      tookMs: Math.max(0, (arrivedMs.get(id) ?? Number.NaN) - acceptedMs),
    }));
    const missing = accepted.filter(each => !isHere(each)).length;
    arrivedMs.clear();
    return {
      reads: latenciesOf(ofReads),
      changes: latenciesOf(ofChanges),
      deliveries: latenciesOf(deliveries.filter(({ tookMs }) => !Number.isNaN(tookMs))),
      missing,
    };
  };
}

let measure: ReturnType<typeof createNeighbour> | undefined;
process.on('message', (message: NeighbourSettings | number) => {
  if (typeof message === 'object') measure = createNeighbour(message);
  else void measure?.(message).then(figures => process.send?.(figures));
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
