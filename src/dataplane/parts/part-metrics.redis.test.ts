import { expect, test, vi } from 'vitest';
import { keyOfSeries, parseExposition } from '../../../test/support/prometheus/exposition.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { createPartMetrics } from './part-metrics.ts';
import type { PartWorkerDeps } from './part-worker-deps.ts';
import { createRoom } from './room.ts';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startProxy } from './testing/proxy.ts';
import { startSink } from './testing/sink.ts';

const soon = { timeout: 15_000, interval: 10 };
const KEYS = ['g0', 'g1', 'g2', 'g3'];

const own = useOwnRedis();

/** A part with one subscription. Each worker has separate metrics. */
async function start(row = {}, endpoint = {}) {
  const world = await createPartWorld(own.redis, own.server.url);
  const sink = await startSink();
  await world.subscribe('a', { ...sink, ...endpoint }, KEYS, row);
  async function startWorker(
    name: string,
    alter: Parameters<typeof world.startWorker>[1] = () => ({}),
    to = own.server.url,
  ) {
    const registry = createRegistry();
    const failures = { count: 0 };
    const metrics = createPartMetrics(
      registry,
      () => 0,
      () => failures.count++,
    );
    const tallied = metrics.join();
    const worker = await world.startWorker(name, deps => ({ tally: tallied.tally, ...alter(deps) }), to);
    tallied.observe(worker.sending);
    /** Returns the value of a series, whose name does not include the common prefix. */
    async function valueOf(series: string): Promise<number | undefined> {
      const all = parseExposition(await registry.metrics());
      return all.find(each => keyOfSeries(each) === `sluice_dispatcher_${series}`)?.value;
    }
    const becomes = (series: string, value: number) =>
      vi.waitFor(async () => expect(await valueOf(series), series).toBe(value), soon);
    return { ...worker, ...tallied, metrics, valueOf, becomes, failures };
  }
  const isEmpty = () => vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
  return { world, sink, startWorker, isEmpty };
}

test('exchanges are counted by result, and attempts while they are in progress', async () => {
  const { world, sink, startWorker, isEmpty } = await start();
  const answers: (() => void)[] = [];
  sink.control.script = (_arrival, response) => void answers.push(() => response.end());
  const d = await startWorker('d1');
  await d.becomes('exchanges_total{result="ok"}', 1);
  await world.send('g0', 'g1');
  await vi.waitFor(() => expect(answers).toHaveLength(2), soon);
  expect(d.metrics.sending()).toBe(2);
  for (const answer of answers) answer();
  await isEmpty();
  // Redis has finished before its response is received.
  await vi.waitFor(async () => expect(await d.valueOf('exchanges_total{result="ok"}')).toBeGreaterThan(1), soon);
  expect(d.metrics.sending()).toBe(0);
  expect(d.failures.count).toBe(0);
  // The control data is lost during an attempt.
  await world.send('g2');
  await vi.waitFor(() => expect(answers).toHaveLength(3), soon);
  await own.redis.call('hdel', world.keys.meta, 'ready');
  answers[2]?.();
  await d.becomes('exchanges_total{result="closed"}', 1);
});

test('only the home reports why a part is held back, and counts events that are routed later', async () => {
  const { world, sink, startWorker, isEmpty } = await start();
  const d = await startWorker('d1');
  d.setHome(true);
  const other = await startWorker('d2');
  expect(await d.valueOf('parts{duty="home"}')).toBe(1);
  expect(await other.valueOf('parts{duty="work"}')).toBe(1);
  await world.change({ kind: 'meta', field: 'granted', value: '0' });
  await world.send('g0', 'g1', 'g2');
  await d.becomes('parts_held{cause="tokens"}', 1);
  await vi.waitFor(
    async () => expect(await d.valueOf('parts_held_seconds{cause="tokens"}')).toBeGreaterThan(0.3),
    soon,
  );
  expect(await d.valueOf('parts_held_seconds{cause="control_data"}')).toBe(0);
  expect(await other.valueOf('parts_held_seconds{cause="tokens"}')).toBe(0);
  expect(await other.valueOf('parts_held{cause="tokens"}')).toBe(0);
  await own.redis.call('hdel', world.keys.keys, '');
  await d.becomes('parts_held{cause="control_data"}', 1);
  expect(await d.valueOf('parts_held{cause="tokens"}')).toBe(0);
  expect(await d.valueOf('parts_held_seconds{cause="tokens"}')).toBe(0);
  expect(await d.valueOf('routed_total{}')).toBe(0);
  await world.change({ kind: 'marker' }, { kind: 'meta', field: 'granted', value: '100' });
  await vi.waitFor(() => expect(sink.arrivals).toHaveLength(3), soon);
  await isEmpty();
  await d.becomes('parts_held{cause="control_data"}', 0);
  const routed = [await d.valueOf('routed_total{}'), await other.valueOf('routed_total{}')];
  expect((routed[0] ?? 0) + (routed[1] ?? 0)).toBe(3);
  d.leave();
  expect(await d.valueOf('parts{duty="home"}')).toBe(0);
});

test('reports missing control data if it belongs to another stream', async () => {
  const { world, sink, startWorker } = await start();
  const answers: (() => void)[] = [];
  sink.control.script = (_arrival, response) => void answers.push(() => response.end());
  const d = await startWorker('d1');
  d.setHome(true);
  await world.send('g0');
  await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
  await own.redis.call('hset', world.keys.meta, 'gen', 'another');
  answers[0]?.();
  await d.becomes('exchanges_total{result="gone"}', 1);
  await d.becomes('parts_held{cause="control_data"}', 1);
  await own.redis.call('hset', world.keys.meta, 'gen', 'gen1');
  await d.becomes('parts_held{cause="control_data"}', 0);
});

test('claims that are taken over from a crashed dispatcher are counted', async () => {
  const { world, sink, startWorker, isEmpty } = await start();
  sink.control.script = () => {};
  const dying = await startWorker('d1');
  await world.send('g0', 'g1');
  await vi.waitFor(() => expect(sink.arrivals).toHaveLength(2), soon);
  const d = await startWorker('d2');
  sink.control.script = (_arrival, response) => response.end();
  await dying.die();
  await isEmpty();
  await d.becomes('returned_claims_total{cause="evicted"}', 2);
});

test('counts claims whose push was lost', async () => {
  const { world, startWorker, isEmpty } = await start();
  let losesNext = false;
  const d = await startWorker(
    'd1',
    ({ pushes }): Partial<PartWorkerDeps> => ({
      pushes: {
        ...pushes,
        listen: (channel, listener) =>
          pushes.listen(channel, {
            ...listener,
            onMessage(message) {
              if (losesNext && message.includes('d1 ')) losesNext = false;
              else listener.onMessage(message);
            },
          }),
      },
    }),
  );
  await world.send('g0');
  await isEmpty();
  losesNext = true;
  await world.send('g1');
  await vi.waitFor(() => expect(losesNext).toBe(false), soon);
  await world.send('g2');
  await isEmpty();
  expect(await d.valueOf('returned_claims_total{cause="lost"}')).toBe(1);
});

test('claims that were too old or could not be sent are counted', async () => {
  const { world, sink, startWorker } = await start({ cap: 1 }, { timeoutMs: 60_000 });
  const answers: (() => void)[] = [];
  sink.control.script = (_arrival, response) => void answers.push(() => response.end());
  // Both clocks are stopped, so claims only age if the clocks are set forward.
  const clock = { ms: 0, beganMs: Date.now() };
  const d = await startWorker('d1', () => ({
    monotonicMs: () => clock.ms,
    wallMs: () => clock.beganMs + clock.ms,
  }));
  const areClaimed = (count: number) =>
    vi.waitFor(async () => expect(await own.redis.call('hlen', world.keys.claims)).toBe(count), soon);
  await world.send('g0');
  await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
  await world.send('g1');
  // The claim is pushed, or claimed by an exchange a moment later.
  await areClaimed(2);
  clock.ms += 600_000;
  answers[0]?.();
  await d.becomes('returned_claims_total{cause="late"}', 1);
  await vi.waitFor(() => expect(answers).toHaveLength(2), soon);
  await world.send('g2');
  await areClaimed(2);
  await world.change(world.rowOf('a', { cap: 1, send: 'held' }));
  // The worker can send until it knows the change.
  await d.hear();
  answers[1]?.();
  await d.becomes('returned_claims_total{cause="unavailable"}', 1);
  expect(await d.valueOf('returned_claims_total{cause="late"}')).toBe(1);
});

test('exchanges without a response are counted, and also counted as failures', async () => {
  const { world, startWorker, isEmpty } = await start();
  const proxy = await startProxy(own.server.url);
  const d = await startWorker('d1', undefined, proxy.url);
  await world.send('g0');
  await isEmpty();
  expect(d.failures.count).toBe(0);
  proxy.loseAnswers(1);
  await world.send('g1', 'g1');
  await d.becomes('exchanges_total{result="failed"}', 1);
  expect(d.failures.count).toBeGreaterThan(0);
  await isEmpty();
});

test('claims whose large bodies find no memory are not counted as too old', async () => {
  const { world, startWorker } = await start();
  const bodyRoom = createRoom(1);
  // Time passes while the first claim waits for memory.
  const clock = { ms: 0, beganMs: Date.now() };
  const join: typeof bodyRoom.join = tenant => {
    const share = bodyRoom.join(tenant);
    const wait: typeof share.wait = (...call) => {
      clock.ms = 10_000;
      return share.wait(...call);
    };
    return { ...share, wait };
  };
  const d = await startWorker('d1', () => ({
    bodyRoom: { ...bodyRoom, join },
    monotonicMs: () => clock.ms,
    wallMs: () => clock.beganMs + clock.ms,
  }));
  await world.ingest({ groupKey: 'g0', meta: '{"s":"/orders"}', body: Buffer.alloc(17 * 1024) });
  await vi.waitFor(async () => {
    expect(await d.valueOf('returned_claims_total{cause="unavailable"}')).toBeGreaterThan(0);
  }, soon);
  expect(await d.valueOf('returned_claims_total{cause="late"}')).toBe(0);
});

test('large bodies that could not be read are counted as failures, without a log line each', async () => {
  const { world, sink, startWorker, isEmpty } = await start({ cap: 100, unordered: true });
  const lines: string[] = [];
  const log = createLogger({ level: 'warn' }, { write: line => void lines.push(line) });
  let isAway = true;
  const d = await startWorker('d1', ({ readBodies }) => ({
    log,
    readBodies: (...call) => (isAway ? Promise.reject(new Error('Command timed out')) : readBodies(...call)),
  }));
  const body = Buffer.alloc(17 * 1024);
  for (let n = 0; n < 8; n++) await world.ingest({ groupKey: 'g0', meta: '{"s":"/orders"}', body });
  await vi.waitFor(() => expect(d.failures.count).toBeGreaterThanOrEqual(8), soon);
  expect(lines).toEqual([]);
  isAway = false;
  await isEmpty();
  expect(sink.arrivals).toHaveLength(8);
});

test('deliveries that have expired are counted, no matter whether they were routed', async () => {
  const registry = createRegistry();
  const { tally } = createPartMetrics(
    registry,
    () => 0,
    () => {},
  ).join();
  tally.expired({ expired: 2, neverRouted: 3 });
  tally.expired({ expired: 1, neverRouted: 0 });
  const series = parseExposition(await registry.metrics());
  const values = series
    .filter(({ name }) => /expired|not_routed/.test(name))
    .map(each => [keyOfSeries(each), each.value]);
  expect(Object.fromEntries(values)).toEqual({
    'sluice_dispatcher_expired_total{}': 3,
    'sluice_dispatcher_not_routed_total{reason="expired"}': 3,
  });
});
