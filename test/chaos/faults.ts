import { setTimeout as delay } from 'node:timers/promises';
import type { Sluice } from '../support/sluice.ts';
import type { Hit } from './record.ts';
import { hasFaketime } from './redis-clock.ts';
import type { World } from './world.ts';

/** Injects a fault once and then pauses. This is repeated for the duration of the fault. */
export type Step = (world: World) => Promise<void>;

const KILL_EVERY_MS = 3_000;

function choose<T>({ random }: World, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** Ingress does not hold any claims. */
const roleFault = (name: string, { roles }: World, role: Sluice): Pick<Hit, 'name' | 'losesResults'> => ({
  name,
  losesResults: role !== roles[0],
});

async function kill(world: World, roles: readonly Sluice[]): Promise<void> {
  const pause = delay(KILL_EVERY_MS);
  const role = choose(world, roles);
  await world.hit(roleFault('kill -9', world, role), role.restart);
  await pause;
}

async function killRedis({ hit, redis, random }: World): Promise<void> {
  await hit({ name: 'kill -9 of Redis', losesResults: true }, async () => {
    await redis.kill();
    await delay(1_000 * random());
    await redis.restart();
  });
  await delay(KILL_EVERY_MS);
}

/** The first process that continues has to wait for Redis. */
async function killAll({ hit, redis, roles }: World): Promise<void> {
  await hit({ name: 'kill -9 of all', losesResults: true }, async () => {
    await Promise.all([redis.kill(), ...roles.map(role => role.kill())]);
    await Promise.all([redis.restart(), ...roles.map(role => role.restart())]);
  });
  await delay(KILL_EVERY_MS);
}

/** Stops a role for 0.5 to 16 s. Half of the stops are shorter than 3 s, after which its claims lapse. */
async function stopRole(world: World): Promise<void> {
  const { random, roles, hit } = world;
  const role = choose(world, roles);
  const stopMs = random() < 0.5 ? 500 + 2_500 * random() : 3_000 + 13_000 * random();
  await hit(roleFault('SIGSTOP', world, role), async () => {
    await role.kill('SIGSTOP');
    await delay(stopMs);
    await role.kill('SIGCONT');
  });
  await delay(2_000);
}

/** Delays responses from Redis for 4 s, or until a few late responses have arrived. */
function delayRedis(ms: number): Step {
  return async ({ hit, proxy }) => {
    await hit({ name: `answers ${ms} ms late`, losesResults: true }, async () => {
      proxy.delay(ms);
      await delay(4_000 + ms);
      proxy.delay(0);
      await delay(ms);
    });
    await delay(3_000);
  };
}

/** Longer delays are covered by the faults in which Redis is unavailable. */
async function pauseClients({ hit, redis, random }: World): Promise<void> {
  const ms = Math.round(200 + 2_300 * random());
  await hit({ name: 'CLIENT PAUSE', losesResults: true }, async () => {
    await redis.command('CLIENT', 'PAUSE', ms, random() < 0.5 ? 'WRITE' : 'ALL');
    await delay(ms);
  });
  await delay(2_000 * random());
}

async function flushScripts({ hit, redis, random }: World): Promise<void> {
  await hit({ name: 'SCRIPT FLUSH', losesResults: false }, () => redis.command('SCRIPT', 'FLUSH'));
  await delay(250 * random());
}

/** Pushed claims which have not been read are lost and are returned later because they have not been sent. */
async function cutPushes({ hit, redis, random, generator }: World): Promise<void> {
  generator.burst(Math.floor(20 * random()));
  await delay(5 * random());
  await hit({ name: 'CLIENT KILL TYPE pubsub', losesResults: true }, () =>
    redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub'),
  );
  await delay(1_000 * random());
}

/** Returns the ids of the connections used for pushes. */
async function pushClients({ redis }: World): Promise<string> {
  const list = String(await redis.command('CLIENT', 'LIST', 'TYPE', 'pubsub'));
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => id).join(' ');
}

/**
 * Makes Redis close connections with responses or pushes in a separate buffer (more than 16 KiB), by sending many long
 * events at the same time.
 */
async function limitBuffers(world: World): Promise<void> {
  const { hit, redis, generator, random } = world;
  const setLimits = (normal: string, pubsub: string) =>
    redis.command('CONFIG', 'SET', 'client-output-buffer-limit', `normal ${normal} pubsub ${pubsub}`);
  const before = await pushClients(world);
  let closed = false;
  await hit({ name: 'client-output-buffer-limit', losesResults: true }, async () => {
    await (random() < 0.5 ? setLimits('1 0 0', '1 0 0') : setLimits('0 0 0', '1 0 0'));
    const untilMs = performance.now() + 3_000;
    while (performance.now() < untilMs && !closed) {
      generator.burst(30);
      await delay(200);
      closed = (await pushClients(world)) !== before;
    }
    await setLimits('0 0 0', '33554432 8388608 60');
  });
  if (!closed) throw new Error('no connection had more in its buffer than the limit');
  await delay(2_000);
}

/** Fills Redis, so that events are refused. Stored events are still processed. */
async function fillMemory({ hit, redis, random, generator }: World): Promise<void> {
  const before = generator.answers.get('503') ?? 0;
  await hit({ name: 'maxmemory', losesResults: false }, async () => {
    await redis.command('CONFIG', 'SET', 'maxmemory', '1mb');
    await delay(1_000 + 2_000 * random());
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
  });
  await delay(1_000);
  if ((generator.answers.get('503') ?? 0) === before) throw new Error('ingress refused nothing while Redis was full');
}

/** Sets the Redis clock forward or back, up to a minute from the correct time. */
async function setClock({ hit, random, setRedisClock }: World): Promise<void> {
  const offsetSeconds = Math.round(120 * random() - 60);
  await hit({ name: `clock ${offsetSeconds} s off`, losesResults: true }, () => setRedisClock(offsetSeconds));
  await delay(3_000);
}

const SINGLE = {
  kill: world => kill(world, world.roles),
  'kill-dispatcher': world => kill(world, world.roles.slice(1)),
  'kill-redis': killRedis,
  'kill-all': killAll,
  stop: stopRole,
  'delay-500': delayRedis(500),
  'delay-1500': delayRedis(1_500),
  'delay-5500': delayRedis(5_500),
  pause: pauseClients,
  'script-flush': flushScripts,
  'cut-pushes': cutPushes,
  buffers: limitBuffers,
  memory: fillMemory,
  clock: setClock,
} as const satisfies Record<string, Step>;

/** Faults that require a library which is not available on every machine. */
const isPossible = (name: string) => name !== 'clock' || hasFaketime();

/** All other faults are used one at a time. */
const mixed: Step = world =>
  choose(
    world,
    Object.entries(SINGLE).filter(([name]) => isPossible(name)),
  )[1](world);

export const FAULTS = { ...SINGLE, mixed } as const satisfies Record<string, Step>;
export type Fault = keyof typeof FAULTS;
