import { randomUUID } from 'node:crypto';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { type RedisServer, startRedis } from '../../../test/support/redis/server.ts';
import type { Part } from '../../part/keys.ts';
import { createMembers } from '../../part/members/members.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { findRedis } from '../../redis/connection/connections.ts';
import { createPushConnection } from '../../redis/connection/push-connection.ts';
import { CLUSTER_KEYS } from '../../redis/keys.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createPartDispatcher } from './part-dispatcher.ts';

const log = createLogger({ level: 'silent' });
let url: string;
let server: RedisServer;
let redis: RedisClient;

beforeEach(async () => {
  // All parts of a Redis are in the same list.
  server = await startRedis();
  url = `redis://127.0.0.1:${server.port}`;
  redis = await connectRedis(url, log);
  return async () => {
    await redis.close();
    await server.stop();
  };
});

/** A dispatcher that only records the parts it works on. */
async function startDispatcher(
  options: {
    isHeld?: () => boolean;
    beforeStart?: (part: Part) => void;
    stopPart?: (part: Part) => Promise<void>;
  } = {},
) {
  const own = await connectRedis(url, log);
  const pushes = createPushConnection(await findRedis({ url }, log), log);
  /** True for each stream for whose part the dispatcher is the home. */
  const works = new Map<string, boolean>();
  const starts: string[] = [];
  /** An `x` for each start or stop, and the replies to commands that are not heartbeats. */
  const story: string[] = [];
  const unlisted: string[] = [];
  const name = randomUUID();
  const dispatcher = createPartDispatcher({
    redis: {
      async call(...args) {
        const reply = await own.call(...args);
        story.push('reply');
        return reply;
      },
    },
    pushes,
    members: createMembers(own, name),
    name,
    isHeld: options.isHeld ?? (() => false),
    onUnlisted: part => unlisted.push(part.queue),
    startPart(part) {
      const id = `${part.queue} ${part.gen}`;
      expect(works.has(id)).toBe(false);
      options.beforeStart?.(part);
      works.set(id, false);
      starts.push(id);
      story.push('x');
      return {
        setHome: isHome => works.set(id, isHome),
        async stop() {
          story.push('x');
          await options.stopPart?.(part);
          works.delete(id);
        },
      };
    },
    log,
  });
  const die = async () => {
    pushes.close();
    await own.close();
  };
  onTestFinished(async () => {
    await dispatcher.stop();
    await die();
  });
  dispatcher.start();
  return {
    works,
    starts,
    story,
    unlisted,
    homes: () => [...works].filter(([, isHome]) => isHome).map(([id]) => id),
    die,
    ...dispatcher,
  };
}

async function list(queue: string, gen: string | undefined) {
  const name = `ten_x:${queue}:0`;
  if (gen === undefined) await redis.call('hdel', CLUSTER_KEYS.parts, name);
  else await redis.call('hset', CLUSTER_KEYS.parts, name, gen);
  await redis.call('spublish', CLUSTER_KEYS.partsChanged, name);
}

const listMany = async (count: number) => {
  for (let i = 0; i < count; i++) await list(`q${i}`, 'g');
};

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 30_000, interval: 20 });

test('works on each listed part until it is no longer listed', async () => {
  await list('early', 'g1');
  const one = await startDispatcher();
  await eventually(() => expect(one.homes()).toEqual(['early g1']));
  await list('late', 'g1');
  await eventually(() => expect(one.homes()).toEqual(['early g1', 'late g1']));
  await list('early', undefined);
  await eventually(() => expect(one.homes()).toEqual(['late g1']));
});

test('starts and stops a few parts at once, and the next ones when Redis has replied', async () => {
  const names = Array.from({ length: 100 }, (_, i) => [`ten_x:q${i}:0`, 'g']);
  await redis.call('hset', CLUSTER_KEYS.parts, ...names.flat());
  let isHeld = false;
  const one = await startDispatcher({ isHeld: () => isHeld });
  const mostAtOnce = () =>
    Math.max(
      ...one.story
        .splice(0)
        .join('')
        .split('reply')
        .map(({ length }) => length),
    );
  await eventually(() => expect(one.homes()).toHaveLength(100));
  expect(mostAtOnce()).toBe(16);
  isHeld = true;
  one.refresh();
  await eventually(() => expect(one.works.size).toBe(0));
  expect(mostAtOnce()).toBe(16);
  isHeld = false;
  one.refresh();
  await eventually(() => expect(one.homes()).toHaveLength(100));
  await one.stop();
  expect(one.works.size).toBe(0);
});

test('a part that cannot be started does not stop the others', async () => {
  await listMany(3);
  let isBroken = true;
  const beforeStart = ({ queue }: Part) => {
    if (isBroken && queue === 'q0') throw new Error('broken');
  };
  const one = await startDispatcher({ beforeStart });
  await eventually(() => expect(one.homes().toSorted()).toEqual(['q1 g', 'q2 g']));
  isBroken = false;
  one.refresh();
  await eventually(() => expect(one.homes()).toHaveLength(3));
});

test('reports parts that are no longer listed if there was no message', async () => {
  await listMany(2);
  const one = await startDispatcher();
  await eventually(() => expect(one.homes()).toHaveLength(2));
  await list('q0', undefined);
  await eventually(() => expect(one.homes()).toHaveLength(1));
  await redis.call('del', CLUSTER_KEYS.parts);
  one.refresh();
  await eventually(() => expect(one.works.size).toBe(0));
  expect(one.unlisted).toEqual(['q1']);
  await list('q1', 'g');
  await eventually(() => expect(one.homes()).toEqual(['q1 g']));
});

test('stops working on a part before its next generation', async () => {
  await list('q', 'g1');
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  const one = await startDispatcher({ stopPart: () => left });
  await eventually(() => expect(one.homes()).toEqual(['q g1']));
  await list('q', 'g2');
  await list('other', 'g');
  await eventually(() => expect(one.homes()).toContain('other g'));
  expect(one.starts).not.toContain('q g2');
  leave();
  await eventually(() => expect(one.homes()).toContain('q g2'));
});

test('three dispatchers divide the parts: each part has one home and one other dispatcher', async () => {
  await listMany(30);
  const all = [await startDispatcher(), await startDispatcher(), await startDispatcher()];
  await eventually(() => {
    expect(all.flatMap(each => each.homes())).toHaveLength(30);
    expect(all.flatMap(each => [...each.works.keys()])).toHaveLength(60);
  });
  expect(new Set(all.flatMap(each => each.homes())).size).toBe(30);
});

test.each(['stops', 'dies'] as const)(
  'if one dispatcher %s, the other becomes the home without a restart',
  async how => {
    await listMany(20);
    const [one, other] = [await startDispatcher(), await startDispatcher()];
    await eventually(() => expect([one.works.size, other.works.size]).toEqual([20, 20]));
    await eventually(() => expect(one.homes().length + other.homes().length).toBe(20));
    if (how === 'stops') await one.stop();
    else await one.die();
    await eventually(() => expect(other.homes()).toHaveLength(20));
    expect(other.starts).toHaveLength(20);
  },
);

test('keeps its parts while the list and the other dispatchers cannot be read', async () => {
  await listMany(3);
  const one = await startDispatcher();
  await eventually(() => expect(one.homes()).toHaveLength(3));
  await redis.call('del', CLUSTER_KEYS.members);
  await redis.call('set', CLUSTER_KEYS.members, 'not a set');
  await redis.call('rename', CLUSTER_KEYS.parts, '{c}:elsewhere');
  await redis.call('set', CLUSTER_KEYS.parts, 'not a hash');
  one.refresh();
  await new Promise(resolve => setTimeout(resolve, 1_500));
  expect(one.homes()).toHaveLength(3);
});

test('stops its parts at once, even if the list of dispatchers cannot be written', async () => {
  await listMany(3);
  const one = await startDispatcher();
  await eventually(() => expect(one.homes()).toHaveLength(3));
  await server.kill('SIGSTOP');
  const stopping = one.stop();
  await vi.waitFor(() => expect(one.works.size).toBe(0), { timeout: 1_000, interval: 20 });
  await server.kill('SIGCONT');
  await stopping;
});

test('pauses while it is held, and continues afterwards', async () => {
  let isHeld = true;
  await listMany(2);
  const one = await startDispatcher({ isHeld: () => isHeld });
  await list('q2', 'g');
  await new Promise(resolve => setTimeout(resolve, 300));
  expect(one.starts).toEqual([]);
  isHeld = false;
  one.refresh();
  await eventually(() => expect(one.homes()).toHaveLength(3));
});

test('a dispatcher that is held does not keep others from working on a part', async () => {
  await listMany(20);
  let isHeld = true;
  const held: Awaited<ReturnType<typeof startDispatcher>>[] = [];
  for (let i = 0; i < 2; i++) held.push(await startDispatcher({ isHeld: () => isHeld }));
  const one = await startDispatcher();
  await eventually(() => expect(one.homes()).toHaveLength(20));
  await new Promise(resolve => setTimeout(resolve, 1_500));
  expect(one.homes()).toHaveLength(20);
  isHeld = false;
  for (const each of held) each.refresh();
  await eventually(() => expect([...held, one].flatMap(each => each.homes())).toHaveLength(20));
  await eventually(() => expect([...held, one].flatMap(each => [...each.works.keys()])).toHaveLength(40));
  expect(one.homes().length).toBeLessThan(20);
});
