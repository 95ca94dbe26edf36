import { availableParallelism, loadavg } from 'node:os';
import { Redis } from 'ioredis';
import { type Completion, createExchange } from '../../src/part/claims/exchange.ts';
import type { Claim } from '../../src/part/claims/message.ts';
import { createGate } from '../../src/part/gate/gate.ts';
import { rowText } from '../../src/part/gate/subscription-row.ts';
import { type Part, partKeys, slotOf } from '../../src/part/keys.ts';
import { NO_REF } from '../../src/part/lanes/ref.ts';
import { createIngest, type PartEvent } from '../../src/part/log/ingest.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { stopOnSignal } from '../support/stop-signal.ts';
import { median } from './report/statistics.ts';

/**
 * Measures the time that the scripts of a part take in Redis, by number of subscriptions, and the bytes of an event.
 * Requires an idle machine. `bin/node test/bench/scripts.ts [--quick]`
 */

const BODY = Buffer.alloc(1_024, 'x');
const META = '{"t":"order.updated","c":"application/json","s":"/tenants/a/streams/orders"}';
const READY_MS = 600_000;
const LIMIT = 10_000_000;
/** The number of activations in a field, see `gate/activations.lua`. */
const GROUP = 128;
const CASES = [
  { subscriptions: 1, matches: 1, batches: [1, 64] },
  { subscriptions: 10, matches: 10, batches: [1, 50] },
  { subscriptions: 100, matches: 100, batches: [1, 5] },
  { subscriptions: 1_000, matches: 512, batches: [1] },
  { subscriptions: 10_000, matches: 1, batches: [1, 64] },
] as const;
const quick = process.argv.includes('--quick');

let number = 0;

/** Creates a part in an empty Redis. Its subscriptions are active for `groupKeys` group keys. */
async function createPart(redis: RedisClient, subscriptions: number, matches: number, groupKeys: number) {
  await redis.callAll('FLUSHALL');
  const part: Part = {
    tenant: 'ten_0123456789abcdefghjk',
    queue: 'orders',
    gen: `g${String(number++).padStart(11, '0')}`,
    number: 0,
  };
  const keys = partKeys(part);
  const slots = Array.from({ length: subscriptions }, (_, i) => slotOf(`sub_${i}`, 'inc'));
  const row = rowText({
    route: 'open',
    send: 'open',
    unordered: false,
    cap: 99_999,
    since: NO_REF,
    cfgv: 'abcdefghij',
    integration: 'int_0123456789abcdefghjk',
  });
  for (let at = 0; at < slots.length; at += 500) {
    await redis.call('hset', keys.subs, ...slots.slice(at, at + 500).flatMap(slot => [slot, row]));
  }
  // Written by the gate, with 1,000 activations of a group key at a time.
  const chosen = slots.slice(0, matches);
  const last = Math.ceil(chosen.length / GROUP);
  for (let key = 0; key < groupKeys; key++) {
    for (let group = 1; group <= last; group++) {
      const list = chosen.slice((group - 1) * GROUP, group * GROUP).map(slot => slot + NO_REF);
      const suffix = group === 1 && last > 1 ? String(last).padStart(3, '0') : '';
      await redis.call('hset', keys.keys, group === 1 ? `g${key}` : `g${key}\0${group}`, list.join('') + suffix);
    }
  }
  const fields = { cfgv: 'c', state: 'open', maxBytes: String(2 ** 40), ready: '1' } as const;
  const gate = createGate(redis);
  const meta = Object.entries(fields).map(([field, value]) => ({
    kind: 'meta' as const,
    field: field as 'ready',
    value,
  }));
  await gate(part, 1, [{ kind: 'begin' }, { kind: 'marker' }, ...meta]);
  const ingest = createIngest(redis);
  const exchange = createExchange(redis);
  const held: Claim[] = [];
  const seen = { pushed: 0, bytes: 0 };
  let calls = 0;
  return {
    part,
    keys,
    slots,
    gate: (change: Parameters<typeof gate>[2][0]) => gate(part, 1, [change]),
    async send(from: number, count: number, senderIds = false): Promise<void> {
      const events = Array.from({ length: count }, (_, i): PartEvent => {
        const event = { groupKey: `g${(from + i) % groupKeys}`, meta: META, body: BODY };
        return senderIds ? { ...event, senderId: `order-${from + i}` } : event;
      });
      const answer = await ingest(part, 'c', events);
      if (answer.answer !== 'OK') throw new Error(answer.answer);
      if (answer.events.length !== count) throw new Error(`${answer.events.length} of ${count} were taken`);
    },
    async exchange(completions: readonly Completion[], most: number): Promise<readonly Claim[]> {
      const holding = {
        dispatcher: 'd0000001',
        number: ++calls,
        readyMs: READY_MS,
        limit: LIMIT,
        held: held.length,
        holdsAlone: false,
      };
      const answer = await exchange(part, { ...holding, ...seen, roomBytes: 2 ** 40 }, completions, most);
      if (answer.answer === 'GONE') throw new Error('GONE');
      seen.pushed = answer.pushed;
      seen.bytes = answer.bytes;
      return answer.events.flatMap(event => event.claims);
    },
    /** Returns all claims. */
    async claims(): Promise<Completion[]> {
      const flat = (await redis.call('hgetall', keys.claims)) as string[] | Record<string, string>;
      const entries = Array.isArray(flat)
        ? flat.flatMap((lane, i) => (i % 2 === 0 ? [[lane, flat[i + 1] as string] as const] : []))
        : Object.entries(flat);
      return entries.map(([lane, claim]) => ({ lane, ref: claim.slice(1, 16), ...DELIVERED }));
    },
  };
}

const DELIVERED = { outcome: 'delivered', reason: '200', latencyMs: 31 } as const;

interface Timed {
  /** The median measured by Redis. Not the mean, since it would include the time used by other processes. */
  readonly usPerCall: number;
  /** The minimum of all calls. */
  readonly leastUs: number;
  /** The duration of the slowest call measured by the client, including the network and the fsync. */
  readonly slowestMs: number;
}

/** Returns the time used by scripts so far, in µs. */
async function readScriptTime(redis: RedisClient): Promise<number> {
  const [stats] = (await redis.callAll('INFO', 'commandstats')) as [string];
  return Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(stats)?.[1] ?? 0);
}

async function time(redis: RedisClient, calls: number, call: (i: number) => Promise<unknown>): Promise<Timed> {
  const each: number[] = [];
  let slowestMs = 0;
  let before = await readScriptTime(redis);
  for (let i = 0; i < calls; i++) {
    const began = performance.now();
    await call(i);
    slowestMs = Math.max(slowestMs, performance.now() - began);
    const after = await readScriptTime(redis);
    each.push(after - before);
    before = after;
  }
  return { usPerCall: median(each), leastUs: Math.min(...each), slowestMs };
}

const round = (value: number) => Number(value.toPrecision(3));

async function listen(server: RedisServer, channel: string): Promise<Redis> {
  const listener = new Redis(server.port);
  await listener.ssubscribe(channel);
  return listener;
}

async function measureCase(
  server: RedisServer,
  redis: RedisClient,
  { subscriptions, matches, batches }: (typeof CASES)[number],
) {
  const row: Record<string, number | string> = { subscriptions, matches };
  const us = async (calls: number, deliveries: number, call: (i: number) => Promise<unknown>) => {
    const { usPerCall, leastUs } = await time(redis, calls, call);
    return `${round(usPerCall / deliveries)} (${round(leastUs / deliveries)})`;
  };
  for (const batch of batches) {
    const calls = matches >= 512 ? 6 : batch === 1 ? 200 : quick ? 10 : 30;
    const keys = calls * batch;
    const pushed = await createPart(redis, subscriptions, matches, keys);
    const listener = await listen(server, pushed.keys.channel);
    await pushed.exchange([], 0);
    row[`push ${batch}`] = await us(calls, batch * matches, i => pushed.send(i * batch, batch));
    const done = await pushed.claims();
    const size = Math.min(256, done.length);
    const ends = Math.min(30, Math.floor(done.length / size));
    row[`end ${size}`] = await us(ends, size, i => pushed.exchange(done.slice(i * size, (i + 1) * size), 0));
    listener.disconnect();
    const waiting = await createPart(redis, subscriptions, matches, keys);
    row[`wait ${batch}`] = await us(calls, batch * matches, i => waiting.send(i * batch, batch));
    row[`behind ${batch}`] = await us(calls, batch * matches, i => waiting.send(i * batch, batch));
    if (batch === batches.at(-1)) {
      const claiming = Math.max(1, Math.min(20, Math.floor((keys * matches) / 64)));
      row['claim 64 with bodies'] = await us(claiming, 64, () => waiting.exchange([], 64));
    }
  }
  return row;
}

/** Measures the script time of single calls of the largest permitted size, in ms. */
async function measureBounds(redis: RedisClient) {
  const ms = async (calls: number, call: (i: number) => Promise<unknown>) => {
    const { usPerCall, leastUs, slowestMs } = await time(redis, calls, call);
    return { scriptMs: round(usPerCall / 1_000), leastMs: round(leastUs / 1_000), slowestMs: round(slowestMs) };
  };
  const bounds: Record<string, { scriptMs: number; leastMs: number; slowestMs: number }> = {};
  const wide = await createPart(redis, 512, 512, 20);
  bounds['512 references of one event'] = await ms(20, i => wide.send(i, 1));
  bounds['claim 64 with bodies, K = 512'] = await ms(20, () => wide.exchange([], 64));
  const many = await createPart(redis, 8, 8, 1_280);
  bounds['512 references of 64 events'] = await ms(20, i => many.send(64 * i, 64));
  const single = await createPart(redis, 1, 1, 10_000);
  for (let i = 0; i < 100; i++) await single.send(64 * i, 64);
  const claims: Claim[] = [];
  bounds['claim 64 with bodies, K = 1'] = await ms(
    20,
    async () => void claims.push(...(await single.exchange([], 64))),
  );
  bounds['claim 128 with bodies, K = 1'] = await ms(
    10,
    async () => void claims.push(...(await single.exchange([], 128))),
  );
  bounds['end 256, K = 1'] = await ms(10, i =>
    single.exchange(
      claims.slice(256 * i, 256 * (i + 1)).map(claim => ({ ...claim, ...DELIVERED })),
      0,
    ),
  );
  const list = await createPart(redis, 1_000, 1_000, 1);
  const slot = list.slots[500] as string;
  bounds['activation beside 1,000 of its key'] = await ms(100, i =>
    list.gate({ kind: i % 2 === 0 ? 'off' : 'on', slot, groupKey: 'g0' }),
  );
  const named = await createPart(redis, 1, 1, 10_000);
  const hour = Math.floor(Date.now() / 3_600_000);
  for (let at = hour - 25; at <= hour; at++) await redis.call('hset', named.keys.ids(at), 'some other id 16', NO_REF);
  await redis.call('hset', named.keys.meta, 'ids', `${hour - 25} ${hour}`);
  bounds["1 event with a sender's id"] = await ms(100, i => named.send(i, 1, true));
  bounds["64 events with a sender's id"] = await ms(20, i => named.send(1_000 + 64 * i, 64, true));
  return bounds;
}

/** Measures the bytes of a delivered event of 1 KiB, in memory and in the append-only file. */
async function measureBytes(server: RedisServer, redis: RedisClient, matches: number, batch: number) {
  const events = quick ? 2_000 : 10_000;
  const t = await createPart(redis, matches, matches, 100);
  const listener = await listen(server, t.keys.channel);
  const read = async () => {
    const [info] = (await redis.callAll('INFO', 'all')) as [string];
    const of = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
    return { memory: of('used_memory'), file: of('aof_current_size') };
  };
  await t.exchange([], 0);
  const before = await read();
  for (let at = 0; at < events; at += batch) {
    await t.send(at, batch);
    const claims = await t.claims();
    for (let from = 0; from < claims.length; from += 256) await t.exchange(claims.slice(from, from + 256), 0);
  }
  const after = await read();
  listener.disconnect();
  return {
    matches,
    batch,
    memory: Math.round((after.memory - before.memory) / events),
    file: Math.round((after.file - before.file) / events),
  };
}

// A rewrite would change the size of the file.
const extra = ['--auto-aof-rewrite-percentage', '0'];
const server = await startRedis({ appendonly: true, onDisk: true, extra });
stopOnSignal(() => server.stop());
try {
  const redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
  const warm = await createPart(redis, 1, 1, 10);
  await warm.send(0, 10);
  await warm.exchange([], 10);
  console.log(`load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores`);
  console.log(
    'Script time a delivery, µs: median (least) of calls. push: stored, routed, claimed and pushed; end: completed',
  );
  for (const each of CASES) console.log(JSON.stringify(await measureCase(server, redis, each)));
  console.log('Bounds: script time of calls, and the slowest call as its caller sees it');
  for (const [name, figure] of Object.entries(await measureBounds(redis))) console.log(name, JSON.stringify(figure));
  console.log('Bytes an event of 1 KiB');
  for (const [matches, batch] of [
    [1, 1],
    [1, 8],
    [10, 1],
    [10, 8],
  ] as const) {
    console.log(JSON.stringify(await measureBytes(server, redis, matches, batch)));
  }
  await redis.close();
} finally {
  await server.stop();
}
