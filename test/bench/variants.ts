import { setTimeout as delay } from 'node:timers/promises';
import type { RedisServer } from '../support/redis/server.ts';
import { sendCommand } from './commands.ts';
import { type ControlState, NOBODY } from './control-state.ts';
import type { Fleet, Member } from './fleet.ts';
import type { Sickness } from './receiver.ts';
import type { Target } from './wire.ts';

/** A pipe delivers events from a producer to endpoints. */
export interface Pipe {
  readonly name: 'sluice' | 'bullmq';
  /**
   * Empties Redis and prepares a run with `endpoints` endpoints, the last of which are sick, and with `unmatched`
   * subscriptions that do not match any event.
   *
   * @returns where to send events
   */
  readonly prepare: (endpoints: number, sick: readonly Sickness[], unmatched: number) => Promise<Target>;
  /** The ids of its processes, without Redis. */
  readonly pids: readonly number[];
  readonly redis: RedisServer;
  /** Returns the number of commands sent to Redis so far. A script counts as one command. */
  readonly readCommands: () => Promise<number>;
}

/** Empties Redis and its append-only file, so that a run is not slowed down by the previous one. */
export async function emptyRedis(redis: RedisServer): Promise<void> {
  await redis.command('FLUSHALL');
  await redis.command('BGREWRITEAOF');
  for (;;) {
    const info = String(await redis.command('INFO', 'persistence'));
    if (/aof_rewrite_in_progress:0/.test(info) && /aof_rewrite_scheduled:0/.test(info)) return;
    await delay(20);
  }
}

async function readMetric(port: number, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const value = new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1];
  if (value === undefined) throw new Error(`no metric ${name}`);
  return Number(value);
}

export function createSluicePipe(fleet: Fleet, roles: readonly Member[], state: ControlState): Pipe {
  return {
    name: 'sluice',
    async prepare(endpoints, sick, unmatched) {
      await emptyRedis(fleet.redis.sluice);
      const ports = fleet.endpointPorts.slice(0, endpoints).map((port, endpoint) => {
        return sick[endpoint - (endpoints - sick.length)] === 'dead' ? NOBODY : port;
      });
      return state.write(fleet.ingress.port, ports, { unmatched });
    },
    pids: roles.map(({ pid }) => pid),
    redis: fleet.redis.sluice,
    async readCommands() {
      const each = await Promise.all(roles.map(role => readMetric(role.controlPort, 'sluice_redis_commands_total')));
      return each.reduce((sum, count) => sum + count, 0);
    },
  };
}

export function createBullmqPipe(fleet: Fleet): Pipe {
  const halves = [fleet.bullmqIngress, fleet.bullmqWorker];
  return {
    name: 'bullmq',
    async prepare(endpoints) {
      await emptyRedis(fleet.redis.bullmq);
      await sendCommand(fleet.bullmqIngress.controlPort, 'endpoints', { count: endpoints });
      return { port: fleet.bullmqIngress.port, path: '/events', headers: {} };
    },
    pids: halves.map(({ pid }) => pid),
    redis: fleet.redis.bullmq,
    async readCommands() {
      const each = await Promise.all(halves.map(half => sendCommand<number>(half.controlPort, 'commands')));
      return each.reduce((sum, count) => sum + count, 0);
    },
  };
}
