import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import type { PushConnection } from '../../redis/connection/push-connection.ts';
import type { PartWorkerDeps } from './part-worker-deps.ts';
import { useOwnRedis } from './testing/own-redis.ts';
import { createPartWorld } from './testing/part-world.ts';
import { startProxy } from './testing/proxy.ts';
import { startSink } from './testing/sink.ts';
import { READY_MS } from './watch.ts';

const soon = { timeout: 30_000, interval: 10 };
const KEYS = Array.from({ length: 6 }, (_, i) => `g${i}`);

const own = useOwnRedis({ appendonly: true });

async function start(row = {}) {
  const world = await createPartWorld(own.redis, own.server.url);
  const sink = await startSink();
  await world.subscribe('a', sink, KEYS, row);
  const times = (body: string) => sink.bodies().filter(each => each === body).length;
  const isEmpty = () => vi.waitFor(async () => expect(await world.isEmpty()).toBe(true), soon);
  return { world, sink, times, isEmpty };
}

/** Pushes, some of which are lost. */
function losing(pushes: PartWorkerDeps['pushes'], isLost: (message: Buffer) => boolean): PartWorkerDeps['pushes'] {
  const listen: PushConnection['listen'] = (channel, listener) =>
    pushes.listen(channel, {
      ...listener,
      onMessage: message => {
        if (!isLost(message)) listener.onMessage(message);
      },
    });
  return { ...pushes, listen };
}

describe('dispatchers', () => {
  test('share a part (three dispatchers): each event once, in order within its lane', async () => {
    const { world, sink, isEmpty } = await start();
    for (const name of ['d1', 'd2', 'd3']) await world.startWorker(name);
    const bodies: string[] = [];
    for (let i = 0; i < 30; i++) bodies.push(...(await world.send(...KEYS)));
    await vi.waitFor(() => expect(sink.arrivals).toHaveLength(bodies.length), soon);
    for (const key of KEYS) expect(sink.of(key)).toEqual(bodies.filter(body => body.startsWith(key)));
    await isEmpty();
  });

  test('deliver the claims of a dispatcher that crashes, at most once more', async () => {
    const { world, sink, times, isEmpty } = await start({ cap: 3 });
    const dying = await world.startWorker('d1');
    sink.control.script = () => {};
    await world.send('g0');
    await vi.waitFor(() => expect(sink.arrivals).toHaveLength(1), soon);
    const bodies = await world.send(...KEYS.slice(1));
    await vi.waitFor(() => expect(sink.arrivals).toHaveLength(3), soon);
    await world.startWorker('d2');
    await delay(200);
    sink.control.script = (_arrival, response) => response.end();
    await dying.die();
    await isEmpty();
    for (const body of bodies) expect([1, 2]).toContain(times(body));
    expect(sink.arrivals.length).toBeLessThanOrEqual(6 + 3);
  });

  test('do not send old claims after being stalled, which are moved to another dispatcher', async () => {
    const { world, sink, isEmpty } = await start();
    const proxy = await startProxy(own.server.url);
    await world.startWorker('d1', undefined, proxy.url);
    await world.send('g0');
    await isEmpty();
    proxy.pause();
    const bodies = await world.send('g0', 'g1');
    expect(await own.redis.call('hlen', world.keys.claims)).toBe(2);
    await world.startWorker('d2');
    await vi.waitFor(() => expect(sink.bodies().slice(1).toSorted()).toEqual(bodies.toSorted()), soon);
    proxy.resume();
    const [last = ''] = await world.send('g2');
    await vi.waitFor(() => expect(sink.bodies()).toContain(last), soon);
    await isEmpty();
    await delay(500);
    expect(sink.arrivals).toHaveLength(4);
  });

  test('make a single attempt that takes longer than they may be silent, even if its timeout changes', async () => {
    const { world, sink, isEmpty } = await start();
    for (const name of ['d1', 'd2']) await world.startWorker(name);
    sink.control.script = (_arrival, response) => void setTimeout(() => response.end(), READY_MS + 1_000);
    const bodies = await world.send('g0');
    await vi.waitFor(() => expect(sink.arrivals).toHaveLength(1), soon);
    await world.change(world.endpointOf('a', { ...sink, timeoutMs: 30_000 }));
    bodies.push(...(await world.send('g1')));
    await isEmpty();
    expect(sink.bodies()).toEqual(bodies);
  });

  test('do not send a late push if the key was deactivated in the meantime', async () => {
    const { world, sink } = await start();
    let unread: (() => void)[] | undefined;
    await world.startWorker('d1', ({ pushes }) => ({
      pushes: {
        ...pushes,
        listen: (channel, listener) =>
          pushes.listen(channel, {
            ...listener,
            onMessage: message => {
              if (unread === undefined) listener.onMessage(message);
              else unread.push(() => listener.onMessage(message));
            },
          }),
      },
    }));
    const answers: (() => void)[] = [];
    sink.control.script = (_arrival, response) => void answers.push(() => response.end());
    await world.send('g0');
    await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
    unread = [];
    await world.send('g1');
    await world.change({ kind: 'off', slot: world.slot('a'), groupKey: 'g1' });
    await delay(1_200);
    for (const read of unread.splice(0)) read();
    unread = undefined;
    await delay(300);
    expect(sink.of('g1')).toEqual([]);
    answers[0]?.();
    await vi.waitFor(async () => expect((await world.counts('a'))[0]).toBe(0), soon);
  });

  test('do not send commands while they are idle until there is an event', async () => {
    const { world, sink } = await start();
    const worker = await world.startWorker('d1');
    await world.send('g0');
    await vi.waitFor(() => expect(sink.arrivals).toHaveLength(1), soon);
    const sentWhileWaiting = async () => {
      const before = worker.commands();
      await delay(1_500);
      return worker.commands() - before;
    };
    await expect.poll(sentWhileWaiting, { timeout: 60_000 }).toBe(0);
    await world.send('g1');
    await vi.waitFor(() => expect(sink.arrivals).toHaveLength(2), soon);
  });

  test('keep waiting events if an endpoint does not respond, instead of claiming them again', async () => {
    const { world, sink, isEmpty } = await start({ cap: 1 });
    sink.control.script = (_arrival, response) => {
      const isFirst = sink.arrivals.length === 1;
      setTimeout(() => response.end(), isFirst ? 3_300 : 0);
    };
    let released = 0;
    await world.startWorker('d1', deps => ({
      exchange: (part, holding, completions, most) => {
        released += completions.filter(({ outcome }) => outcome === 'released').length;
        return deps.exchange(part, holding, completions, most);
      },
    }));
    const bodies = await world.send('g0', 'g1');
    await isEmpty();
    expect(sink.bodies()).toEqual(bodies);
    expect(released).toBe(1);
  });
});

describe('lost messages', () => {
  test.each(['with one after it', 'with nothing after it'])(
    'a push, %s: no event is lost or sent twice',
    async after => {
      const { world, sink, isEmpty } = await start();
      let losesNext = false;
      await world.startWorker('d1', deps => ({
        pushes: losing(deps.pushes, message => {
          const isLost = losesNext && message.includes('d1 ');
          losesNext &&= !isLost;
          return isLost;
        }),
      }));
      await world.send('g0');
      await isEmpty();
      losesNext = true;
      await world.send('g1', 'g2');
      if (after === 'with one after it') await world.send('g3');
      await vi.waitFor(() => expect(losesNext).toBe(false), soon);
      await isEmpty();
      const bodies = sink.bodies();
      expect(bodies).toHaveLength(after === 'with one after it' ? 4 : 3);
      expect(new Set(bodies).size).toBe(bodies.length);
    },
  );

  test('are searched for when it is its turn by a part without claims, and at once by a part that has some', async () => {
    const { world, sink, isEmpty } = await start();
    const turns: (() => void | Promise<void>)[] = [];
    let looks = 0;
    let reconnect = () => {};
    await world.startWorker('d1', deps => ({
      paced: look => void turns.push(look),
      pushes: {
        ...deps.pushes,
        listen(channel, listener) {
          reconnect = listener.onListening;
          deps.pushes.listen(channel, listener);
        },
      },
      readOwnClaims: (part, name) => {
        looks++;
        return deps.readOwnClaims(part, name);
      },
    }));
    await world.send('g0');
    await isEmpty();
    await vi.waitFor(() => {
      reconnect();
      expect(turns.length).toBeGreaterThan(0);
    }, soon);
    // It does not have to wait for its turn to send an event.
    await world.send('g1');
    await isEmpty();
    const before = looks;
    void turns.pop()?.();
    await vi.waitFor(() => expect(looks).toBe(before + 1), soon);

    const answers: (() => void)[] = [];
    sink.control.script = (_arrival, response) => void answers.push(() => response.end());
    await world.send('g2');
    await vi.waitFor(() => expect(answers).toHaveLength(1), soon);
    const waiting = turns.length;
    reconnect();
    expect(turns).toHaveLength(waiting);
    await vi.waitFor(() => expect(looks).toBe(before + 2), soon);
    for (const answer of answers) answer();
    await isEmpty();
  });

  test('a push while another push has not been read, which is not treated as lost: no event is sent twice', async () => {
    const { world, sink, isEmpty } = await start();
    let losesNext = false;
    let unread: (() => void)[] | undefined;
    const readAll = () => {
      for (const read of unread?.splice(0) ?? []) read();
      unread = undefined;
    };
    await world.startWorker('d1', deps => {
      const pushes = losing(deps.pushes, message => {
        const isLost = losesNext && message.includes('d1 ');
        losesNext &&= !isLost;
        return isLost;
      });
      const listen: PushConnection['listen'] = (channel, listener) =>
        pushes.listen(channel, {
          ...listener,
          onMessage: message => {
            if (unread === undefined) listener.onMessage(message);
            else unread.push(() => listener.onMessage(message));
          },
        });
      const fence = async (channel: string) => {
        await pushes.fence(channel);
        readAll();
      };
      let isFirst = true;
      const readOwnClaims: PartWorkerDeps['readOwnClaims'] = async (part, name) => {
        if (isFirst) {
          isFirst = false;
          unread = [];
          await world.send('g5');
          setTimeout(readAll, 300);
        }
        return deps.readOwnClaims(part, name);
      };
      return { pushes: { ...pushes, listen, fence }, readOwnClaims };
    });
    await world.send('g0');
    await isEmpty();
    losesNext = true;
    await world.send('g1');
    await vi.waitFor(() => expect(losesNext).toBe(false), soon);
    await world.send('g2');
    await vi.waitFor(() => expect(new Set(sink.bodies()).size).toBe(4), soon);
    await isEmpty();
    await delay(400);
    expect(sink.arrivals).toHaveLength(4);
  });

  test('responses of exchanges: no event is lost or sent twice, and no claim lapses', async () => {
    const { world, sink, isEmpty } = await start();
    const proxy = await startProxy(own.server.url);
    const lapses: number[] = [];
    const alter = ({ exchange }: PartWorkerDeps): Partial<PartWorkerDeps> => ({
      async exchange(...call) {
        const answer = await exchange(...call);
        if (answer.answer !== 'GONE')
          lapses.push(...answer.events.flatMap(each => each.claims.map(claim => claim.lapses)));
        return answer;
      },
    });
    await world.startWorker('d1', alter, proxy.url);
    const bodies = await world.send('g0');
    await isEmpty();
    for (let round = 0; round < 3; round++) {
      proxy.loseAnswers(1);
      // There are two events of a lane. The exchange that ends the first event claims the second.
      bodies.push(...(await world.send(...KEYS, ...KEYS)));
      await vi.waitFor(() => expect(proxy.lost()).toBe(true), soon);
      await isEmpty();
    }
    for (const key of KEYS) expect(sink.of(key)).toEqual(bodies.filter(body => body.startsWith(key)));
    expect(new Set(lapses)).toEqual(new Set([0]));
  });
});

test('delivers everything in order after Redis was killed and restarted', async () => {
  const { world, sink, isEmpty } = await start();
  for (const name of ['d1', 'd2']) await world.startWorker(name);
  const bodies: string[] = [];
  for (let i = 0; i < 10; i++) bodies.push(...(await world.send(...KEYS)));
  await own.server.restart();
  await vi.waitFor(() => expect(own.redis.isReady()).toBe(true), soon);
  for (let i = 0; i < 10; i++) bodies.push(...(await world.send(...KEYS)));
  await isEmpty();
  for (const key of KEYS) {
    const first = [...new Set(sink.of(key))];
    expect(first).toEqual(bodies.filter(body => body.startsWith(key)));
  }
});
