import { setTimeout as delay } from 'node:timers/promises';
import type { Sluice } from '../support/sluice.ts';
import type { Hit } from './record.ts';
import type { World } from './world.ts';

/** Disturbs once, then pauses; repeated while the fault lasts. */
export type Step = (world: World) => Promise<void>;

const KILL_EVERY_MS = 3_000;

function choose<T>({ random }: World, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** Ingress holds no claims. */
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

/** Whoever comes back first has to wait for Redis. */
async function killAll({ hit, redis, roles }: World): Promise<void> {
  await hit({ name: 'kill -9 of all', losesResults: true }, async () => {
    await Promise.all([redis.kill(), ...roles.map(role => role.kill())]);
    await Promise.all([redis.restart(), ...roles.map(role => role.restart())]);
  });
  await delay(KILL_EVERY_MS);
}

/** Stops a role for 0.5 to 16 s: as often for less than 3 s, when its claims lapse, as for longer. */
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

/** Delays what Redis sends, for 4 s or, where that is less, until a few late answers have come. */
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

/** Longer pauses are those of a Redis that is away. */
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

/** What was pushed and not read is lost, and then given back: it was not sent. */
async function cutPushes({ hit, redis, random, generator }: World): Promise<void> {
  generator.burst(Math.floor(20 * random()));
  await delay(5 * random());
  await hit({ name: 'CLIENT KILL TYPE pubsub', losesResults: true }, () =>
    redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub'),
  );
  await delay(1_000 * random());
}

export const FAULTS = {
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
} as const satisfies Record<string, Step>;
export type Fault = keyof typeof FAULTS;
