import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { partKeys } from '../../../src/part/keys.ts';
import { CLUSTER_KEYS } from '../../../src/redis/keys.ts';
import { startRedisCluster } from '../../support/redis/cluster.ts';
import { DOCUMENTED, startRedis } from '../../support/redis/server.ts';
import type { Sluice } from '../../support/sluice.ts';
import { faultsOf } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample, type Publication, type Sample } from '../support/publisher.ts';
import { PRODUCER, QUEUE } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { kubectl } from '../support/world.ts';

const GROUP_KEYS = ['red', 'green', 'blue'];

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: GROUP_KEYS });

interface Try {
  readonly sample: Sample;
  readonly answer: Publication | undefined;
}

/** Sends events one after another until `stop`, with a single attempt each. */
function publishSteadily(prefix: string): { readonly tries: Try[]; readonly stop: () => Promise<void> } {
  const tries: Try[] = [];
  let stopped = false;
  const done = (async () => {
    for (let n = 0; !stopped; n++) {
      const sample = makeSample(`${prefix}.${n}`, GROUP_KEYS[n % GROUP_KEYS.length], `body of ${prefix} ${n}`);
      tries.push({ sample, answer: await world.publisher.post(sample).catch(() => undefined) });
      await delay(10);
    }
  })();
  return {
    tries,
    stop: async () => {
      stopped = true;
      await done;
    },
  };
}

/** Returns the condition of the stream, and the time of its last transition. */
const readiness = () => {
  const path = '{range .status.conditions[?(@.type=="Ready")]}{.status}/{.reason} {.lastTransitionTime}{end}';
  return kubectl(world.cluster, ['get', `catalogstream/${QUEUE}`, '-n', PRODUCER, '-o', `jsonpath=${path}`]);
};

const acceptedOf = (tries: readonly Try[]) =>
  tries.filter(({ answer }) => answer?.status === 202).map(({ sample }) => sample);

it.each([1, 2])('restores Redis from the custom resources after FLUSHALL, time %i', async time => {
  const { observer, receiver } = world;
  receiver.clear();
  const steady = publishSteadily(`flush-${time}`);
  await eventually('events are delivered', async () => acceptedOf(steady.tries).length > 10);

  const before = await readiness();
  await world.redis.command('FLUSHALL');
  const [flushedMs, flushedAtMs] = [performance.now(), Date.now()];
  const rebuilt = await eventually(
    'the control state is restored, and the stream was not ready in the meantime',
    async () => {
      const now = await readiness();
      const ready = await world.redis.command('HGET', '{c}:meta', 'ready');
      return ready === '1' && now.startsWith('True/QueueReady ') && now !== before;
    },
    { everyMs: 100 },
  );
  await eventually('events are accepted', async () => steady.tries.at(-1)?.answer?.status === 202);
  await delay(1_000);
  await steady.stop();

  // The responses after the flush are 503 until everything has been restored, and 202 after that.
  const after = steady.tries.filter(({ answer }) => (answer?.sentMs ?? 0) > flushedMs);
  const statuses = after.map(({ answer }) => answer?.status);
  const firstAccepted = statuses.indexOf(202);
  expect(new Set(statuses.slice(0, firstAccepted))).toEqual(new Set([503]));
  expect(new Set(statuses.slice(firstAccepted))).toEqual(new Set([202]));
  expect(after[0]?.answer?.headers['retry-after']).toMatch(/^\d+$/);
  const recovered = after[firstAccepted]?.answer?.sentMs ?? Number.NaN;
  console.log(
    `flush ${time}: ingress took events again after ${Math.round(recovered - flushedMs)} ms, ` +
      `all objects ready after ${Math.round(rebuilt.tookMs)} ms; ${firstAccepted} answers of 503`,
  );

  // All events accepted since then are routed, but no earlier events.
  const samples = acceptedOf(after);
  for (const partner of ['ada', 'bob']) {
    await eventually('the events are delivered', async () =>
      samples.every(({ id }) => receiver.delivered(partner).has(id)),
    );
    const early = receiver.attempts.filter(
      ({ headers, atMs }) => Number(headers['webhook-timestamp']) * 1_000 > flushedAtMs + 1_000 && atMs < recovered,
    );
    expect(early).toEqual([]);
    // Events from before the flush that have been delivered are in order. All later events follow without a gap.
    const arrived = acceptedOf(steady.tries).filter(
      ({ id }) => samples.some(sample => sample.id === id) || receiver.delivered(partner).has(id),
    );
    expect(faultsOf(receiver, partner, arrived)).toEqual([]);
  }
  for (const reason of ['ControlStateLost', 'ControlStateRebuilt']) {
    await observer.untilEvent(`Workspace/${PRODUCER} ${reason}`);
  }
});

describe('while events are being published', () => {
  const NAME = `${tenantId(PRODUCER)}:${QUEUE}:0`;

  async function readPartKeys() {
    const gen = String(await world.redis.command('HGET', CLUSTER_KEYS.parts, NAME));
    return partKeys({ tenant: tenantId(PRODUCER), queue: QUEUE, gen, number: 0 });
  }

  /** Runs a script. The roles and the controller find either all of the damage, or none of it. */
  const damageAtOnce = (source: string, ...args: string[]) => world.redis.command('EVAL', source, 0, ...args);
  const removeAll = (pattern: string) =>
    damageAtOnce("for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end", pattern);

  it.each<[string, 'all' | 'later', () => Promise<unknown>]>([
    ['the meta of a part is lost', 'all', async () => world.redis.command('DEL', (await readPartKeys()).meta)],
    [
      'a part says that it was removed',
      'all',
      async () => {
        const { meta } = await readPartKeys();
        await damageAtOnce("redis.call('DEL', ARGV[1]) redis.call('HSET', ARGV[1], 'gen', '-')", meta);
      },
    ],
    ['the slot of the cluster is emptied', 'all', () => removeAll('{c}:*')],
    ['the slot of a part is emptied', 'later', () => removeAll(`{q:${NAME}}*`)],
    ['the slot of the tenant is emptied', 'all', () => removeAll(`{t:${tenantId(PRODUCER)}}*`)],
  ])('%s: it is in effect again, and all accepted events are delivered', async (what, expected, damage) => {
    const { receiver } = world;
    receiver.clear();
    const steady = publishSteadily(what.replaceAll(' ', '-'));
    await eventually('events are delivered', async () => acceptedOf(steady.tries).length > 20);
    await damage();
    const damagedMs = performance.now();
    await eventually('the control state exists', async () => {
      const ready = await world.redis.command('HGET', CLUSTER_KEYS.meta, 'ready');
      return ready === '1' && (await world.redis.command('HEXISTS', CLUSTER_KEYS.parts, NAME)) === 1;
    });
    const wholeMs = performance.now();
    // Some time after the damage, events are accepted one after another without a refusal.
    await eventually('events are accepted', async () => {
      const last = steady.tries.slice(-50);
      const sinceMs = last[0]?.answer?.sentMs ?? 0;
      return last.every(({ answer }) => answer?.status === 202) && sinceMs > wholeMs;
    });
    await steady.stop();
    const samples = acceptedOf(
      expected === 'all' ? steady.tries : steady.tries.filter(({ answer }) => (answer?.sentMs ?? 0) > damagedMs + 100),
    );
    for (const partner of ['ada', 'bob']) {
      await eventually(`delivered to ${partner}`, async () =>
        samples.every(({ id }) => receiver.delivered(partner).has(id)),
      );
    }
  });
});

describe('after SLUICE_REDIS_URL was changed', () => {
  const offsetOf = (info: unknown) => /^master_repl_offset:(\d+)/m.exec(String(info))?.[1];
  const warnings = async (sluice: Sluice) =>
    (await sluice.logLines()).filter(({ msg }) => String(msg).startsWith('This Redis does not contain the data'));
  /** Waits until the controller has compared its Redis with the one in the Lease. Other roles work before that. */
  const untilLeading = (sluice: Sluice) =>
    eventually('the controller leads', async () =>
      (await sluice.logLines()).some(({ msg }) => msg === 'starting the controllers'),
    );

  it('a Redis with a copy of the data delivers the waiting events; an empty Redis is reported', async () => {
    const { receiver, observer, redis, sluice } = world;
    const [copy, empty] = await Promise.all([
      startRedis({ appendonly: true, extra: DOCUMENTED }),
      startRedis({ appendonly: true, extra: DOCUMENTED }),
    ]);
    onTestFinished(() => Promise.all([copy.stop(), empty.stop()]).then(() => {}));
    receiver.clear();
    receiver.behave(() => 503);
    const waiting = makeSample('moved', GROUP_KEYS[0], 'an event that waits for a retry');
    expect((await world.publisher.publish(waiting)).status).toBe(202);
    await sluice.stop();

    // As in docs/operations.md.
    await copy.command('REPLICAOF', '127.0.0.1', redis.port);
    const isCopied = async () => String(await copy.command('INFO', 'replication')).includes('master_link_status:up');
    await eventually('Redis is copied', isCopied);
    const offsets = () => Promise.all([redis, copy].map(each => each.command('INFO', 'replication').then(offsetOf)));
    await eventually('both have the same offset', async () => new Set(await offsets()).size === 1);
    await copy.command('REPLICAOF', 'NO', 'ONE');
    receiver.behave(() => 204);
    const moved = await world.start({ redisUrl: copy.url });
    for (const partner of ['ada', 'bob']) await receiver.arrival(waiting.id, partner);
    await untilLeading(moved);
    expect(await warnings(moved)).toEqual([]);
    await moved.stop();

    const replaced = await world.start({ redisUrl: empty.url });
    await observer.untilEvent(`Workspace/${PRODUCER} RedisReplaced`);
    expect(await warnings(replaced)).toHaveLength(1);
    await replaced.stop();
  });

  it('a Redis Cluster with imported data delivers the waiting events', async () => {
    const { receiver, redis } = world;
    const cluster = await startRedisCluster({ redis: { appendonly: true } });
    onTestFinished(cluster.stop);
    const sluice = await world.start();
    const publisher = world.publisherOf(sluice);
    receiver.behave(() => 503);
    const waiting = makeSample('imported', GROUP_KEYS[0], 'an event that waits for a retry');
    expect((await publisher.publish(waiting)).status).toBe(202);
    await untilLeading(sluice);
    await sluice.stop();

    // As in docs/operations.md.
    const address = (url: string) => url.slice('redis://'.length);
    const [node = ''] = cluster.urls;
    const options = ['--cluster-from', address(redis.url), '--cluster-copy'];
    await promisify(execFile)('redis-cli', ['--cluster', 'import', address(node), ...options]);
    const sizes = await Promise.all(cluster.nodes.map(each => each.command('DBSIZE')));
    expect(sizes.reduce<number>((sum, size) => sum + Number(size), 0)).toBe(await redis.command('DBSIZE'));

    receiver.behave(() => 204);
    const moved = await world.start({ redisUrl: cluster.url });
    for (const partner of ['ada', 'bob']) await receiver.arrival(waiting.id, partner);
    await untilLeading(moved);
    expect(await warnings(moved)).toEqual([]);
    await moved.stop();
  });
});
