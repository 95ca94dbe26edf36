import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { deriveSealKeys } from '../../src/core/delivery/seal.ts';
import { sealSlotEndpoint } from '../../src/core/delivery/slot-endpoint.ts';
import { createEndpointClient } from '../../src/dataplane/dispatcher/endpoint-client.ts';
import { createPartWorker } from '../../src/dataplane/parts/part-worker.ts';
import { createRoom } from '../../src/dataplane/parts/room.ts';
import { createAdvance } from '../../src/part/catchup/advance.ts';
import { createExchange } from '../../src/part/claims/exchange.ts';
import { createEvict, createReadOwnClaims } from '../../src/part/claims/held-claims.ts';
import { createLookAtPart } from '../../src/part/claims/look.ts';
import { createGate } from '../../src/part/gate/gate.ts';
import { type Part, slotOf } from '../../src/part/keys.ts';
import { NO_REF } from '../../src/part/lanes/ref.ts';
import { createIngest } from '../../src/part/log/ingest.ts';
import { createReadBodies } from '../../src/part/log/read-bodies.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { findRedis } from '../../src/redis/connections.ts';
import { createPushConnection } from '../../src/redis/push-connection.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { startRedis } from '../support/redis/server.ts';
import { stopOnSignal } from '../support/stop-signal.ts';

/**
 * Time from the answer of ingest to the arrival at an endpoint, of one part with one subscription, all in this process but
 * Redis: `bin/node test/bench/part-delivery.ts [events a second] [seconds]`.
 */

const RATE = Number(process.argv[2] ?? 200);
const SECONDS = Number(process.argv[3] ?? 10);
const WARM_SECONDS = 2;
const GROUP_KEYS = Array.from({ length: 100 }, (_, i) => `g${i}`);
const BODY = Buffer.alloc(1_024, 'x');
const NUMBER_BYTES = 8;

const log = createLogger({ level: 'silent' });
const server = await startRedis({ appendonly: true, onDisk: true });
stopOnSignal(() => server.stop());

const arrivedMs = new Map<number, number>();
let arrivals = 0;
const sink = createServer((request, response) => {
  request.once('data', (chunk: Buffer) => {
    arrivals++;
    arrivedMs.set(Number(chunk.toString('latin1', 0, NUMBER_BYTES)), performance.now());
  });
  request.on('end', () => response.end());
});
sink.listen(0, '127.0.0.1');
await once(sink, 'listening');

const part: Part = { tenant: `ten_${randomBytes(8).toString('hex')}`, queue: 'orders', gen: 'gen1', number: 0 };
const producer = await connectRedis(server.url, log);
const redis = await connectRedis(server.url, log);
const rootKey = Buffer.alloc(32, 7);
const sealKeys = deriveSealKeys(rootKey);
const owner = { subscription: 'sub_a', inc: 'inc1' };
const slot = slotOf(owner.subscription, owner.inc);
const url = `http://127.0.0.1:${(sink.address() as AddressInfo).port}/hook`;
const endpoint = { url, timeoutMs: 15_000, retryMs: [5_000], headers: {}, secretVersion: 1 };
const row = { unordered: false, cap: 64, since: NO_REF, cfgv: 'v1', integration: 'int_x' };
await createGate(producer)(part, 1, [
  { kind: 'begin' },
  { kind: 'marker' },
  { kind: 'row', slot, row: { route: 'open', send: 'open', ...row } },
  { kind: 'endpoint', slot, sealed: sealSlotEndpoint(sealKeys, owner, endpoint) },
  ...GROUP_KEYS.map(groupKey => ({ kind: 'on' as const, slot, groupKey })),
  ...(['cfgv', 'state', 'maxBytes', 'ready'] as const).map(field => {
    return {
      kind: 'meta' as const,
      field,
      value: { cfgv: 'c', state: 'open', maxBytes: '1000000000000', ready: '1' }[field],
    };
  }),
]);

const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'] });
const pushes = createPushConnection(await findRedis({ url: server.url }, log), log);
const worker = createPartWorker(
  {
    name: 'bench',
    redis,
    pushes,
    exchange: createExchange(redis),
    readOwnClaims: createReadOwnClaims(redis),
    evict: createEvict(redis),
    advance: createAdvance(redis),
    look: createLookAtPart(redis),
    readBodies: createReadBodies(redis),
    keys: { rootKey, sealKeys },
    version: '0',
    room: createRoom(4_096),
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
    random: Math.random,
    attempt: client.attempt,
    onAttempt: () => {},
    onDisabled: () => {},
    onDelivery: () => {},
    onClosed: () => {},
    log,
  },
  part,
);

const ingest = createIngest(producer);
const acceptedMs = new Map<number, number>();
let refused = 0;

async function send(number: number): Promise<void> {
  const body = Buffer.concat([Buffer.from(String(number).padStart(NUMBER_BYTES, '0')), BODY.subarray(NUMBER_BYTES)]);
  const groupKey = GROUP_KEYS[number % GROUP_KEYS.length] as string;
  const meta = '{"t":"order.updated","c":"application/json","s":"/tenants/a/streams/orders"}';
  const answer = await ingest(part, 'c', [{ groupKey, meta, body }]);
  if (answer.answer === 'OK') acceptedMs.set(number, performance.now());
  else refused++;
}

/** Sends evenly; returns the first number that was not sent. */
async function sendFor(seconds: number, first: number): Promise<number> {
  const beganMs = performance.now();
  let next = first;
  for (;;) {
    const elapsedMs = performance.now() - beganMs;
    if (elapsedMs >= seconds * 1_000) return next;
    while (next - first < (elapsedMs / 1_000) * RATE) void send(next++).catch(() => refused++);
    await delay(1);
  }
}

function percentile(sorted: readonly number[], share: number): number {
  return Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(2));
}

await delay(200);
const first = await sendFor(WARM_SECONDS, 0);
const before = { cpu: process.cpuUsage(), commands: producer.commandsSent() + redis.commandsSent() };
const last = await sendFor(SECONDS, first);
const cpu = process.cpuUsage(before.cpu);
const commands = producer.commandsSent() + redis.commandsSent() - before.commands;
await delay(1_000);

const delays: number[] = [];
for (let number = first; number < last; number++) {
  const [accepted, arrived] = [acceptedMs.get(number), arrivedMs.get(number)];
  if (accepted !== undefined && arrived !== undefined) delays.push(arrived - accepted);
}
delays.sort((a, b) => a - b);
const sent = last - first;
console.log(
  JSON.stringify({
    eventsPerSecond: Math.round(sent / SECONDS),
    sent,
    arrived: delays.length,
    refused,
    twice: arrivals - arrivedMs.size,
    acceptToSinkMs: { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) },
    commandsPerDelivery: Number((commands / sent).toFixed(2)),
    cpuMsPerEvent: Number(((cpu.user + cpu.system) / 1_000 / sent).toFixed(2)),
    load: loadavg().map(each => Number(each.toFixed(1))),
  }),
);

await worker.stop();
pushes.close();
await Promise.all([producer.close(), redis.close(), client.close()]);
sink.closeAllConnections();
sink.close();
await server.stop();
