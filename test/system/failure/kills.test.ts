import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createRandom } from '../../support/random.ts';
import type { Sluice } from '../../support/sluice.ts';
import { faultsOf, queueLength, readInbox, readSeries } from '../support/audit.ts';
import { eventually, spread } from '../support/deadline.ts';
import { countStatuses, makeSamples, type Sample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { ROLES, useSmallWorld } from '../support/use-small-world.ts';
import { activation } from '../support/world.ts';

const PARTNERS = ['ada', 'bob', 'cy'];
const GROUP_KEYS = Array.from({ length: 50 }, (_, i) => `customer-${i}`);
const PER_KEY = 25;
const DOWN_MS = 1_000;

const world = useSmallWorld({ partners: PARTNERS, groupKeys: GROUP_KEYS, separateRoles: true });
/** All events accepted by all tests so far. */
const accepted: Sample[] = [];

/** Publishes events while one partner fails sometimes, and calls `disturb` after some of them were delivered. */
async function run(name: string, disturb: () => Promise<void>): Promise<string> {
  const { receiver } = world;
  receiver.clear();
  const random = createRandom(11);
  receiver.behave(({ subscription }) => (subscription === 'bob' && random() < 0.1 ? 500 : 204));
  const samples = makeSamples({ groupKeys: GROUP_KEYS, perKey: PER_KEY, prefix: `${name}.`, seed: 3 });
  const publishing = world.publisher.publishAll(samples, 16);
  // Prevents an unhandled rejection during the disturbance.
  publishing.catch(() => {});
  await eventually('some events are delivered', async () => receiver.delivered('ada').size > samples.length / 5);
  const atMs = performance.now();
  await disturb();
  const downMs = performance.now() - atMs;
  const published = await publishing;
  expect(countStatuses(published.values())).toEqual({ 202: samples.length });
  accepted.push(...samples);
  const everything = async () => PARTNERS.every(partner => receiver.delivered(partner).size >= samples.length);
  const { tookMs } = await eventually('all events are delivered', everything, { withinMs: 90_000 });

  for (const partner of PARTNERS) expect(faultsOf(receiver, partner, samples, { crashes: 1 })).toEqual([]);
  const repeated = receiver.attempts.length - PARTNERS.length * samples.length;
  const failed = receiver.attempts.filter(({ status }) => status !== 204).length;
  const arrivals = receiver.attempts.filter(each => each.earlier === 0 && each.subscription === 'ada');
  const longest = arrivals.reduce(
    (most, each, i) => Math.max(most, i === 0 ? 0 : each.atMs - (arrivals[i - 1]?.atMs ?? 0)),
    0,
  );
  const waits = [...published.values()].map(({ sentMs, answeredMs }) => answeredMs - sentMs);
  return (
    `${name}: down ${Math.round(downMs)} ms, longest gap between arrivals ${Math.round(longest)} ms, all delivered ` +
    `${Math.round(tookMs)} ms after the last 202 (${spread(waits)}); sent twice: ${repeated - failed}`
  );
}

/** Expects that no events of all tests so far were lost, routed twice, or are still open. */
async function compareRedis(): Promise<void> {
  expect(await queueLength(world, PRODUCER, QUEUE)).toBe(accepted.length);
  for (const partner of PARTNERS) {
    const inbox = { producer: PRODUCER, partner, name: SUBSCRIPTION };
    const { value } = await eventually(
      `all deliveries of ${partner} have ended`,
      async () => {
        const state = await readInbox(world, inbox);
        return state.open === 0 && state.claimed === 0 && state;
      },
      { everyMs: 200 },
    );
    expect(value.routed).toHaveLength(accepted.length);
    expect(new Set(value.routed.map(({ id }) => id)).size).toBe(accepted.length);
    expect(value.counters).toEqual({ routed: accepted.length, delivered: accepted.length });
  }
  // The counts are exact, even if a process was killed: another process adds them.
  const { value: series } = await eventually(
    'the series contains all events',
    async () => {
      const counted = await readSeries(world.redis, PRODUCER);
      return counted.deliveries >= PARTNERS.length * accepted.length && counted.eventsIn >= accepted.length && counted;
    },
    { everyMs: 200 },
  );
  expect(series).toEqual({
    eventsIn: accepted.length,
    deliveries: PARTNERS.length * accepted.length,
    failures: expect.any(Number),
    notRouted: 0,
    bytes: accepted.reduce((sum, { body }) => sum + body.length, 0),
    tokens: PARTNERS.length * accepted.length,
  });
}

it.each(ROLES)('does not lose, reorder, or route any event twice if the %s is killed', async role => {
  const victim = world.processes.get(role) as Sluice;
  console.log(
    await run(role, async () => {
      await victim.kill('SIGKILL');
      await delay(DOWN_MS);
      await victim.restart();
    }),
  );
  await compareRedis();
});

it('does not lose, reorder, or route any event twice if Redis is killed', async () => {
  console.log(
    await run('redis', async () => {
      await world.redis.kill('SIGKILL');
      await delay(DOWN_MS);
      await world.redis.restart();
    }),
  );
  await compareRedis();
});

it('does not lose, reorder, or route any event twice if all roles and Redis are killed at the same time', async () => {
  console.log(
    await run('all', async () => {
      await Promise.all([
        world.redis.kill('SIGKILL'),
        ...[...world.processes.values()].map(each => each.kill('SIGKILL')),
      ]);
      await world.redis.restart();
      await Promise.all([...world.processes.values()].map(each => each.restart()));
    }),
  );
  await compareRedis();
});

it('applies the changes made while the controller was not running', async () => {
  const { observer, receiver } = world;
  const controller = world.processes.get('controller') as Sluice;
  await controller.kill('SIGKILL');
  const samples = makeSamples({ groupKeys: ['newcomer'], perKey: 1 });
  await observer.apply(activation(PRODUCER, 'ada', 'newcomer'));
  await controller.restart();
  const name = activation(PRODUCER, 'ada', 'newcomer').metadata.name;
  const tookMs = await observer.until(['Activation', name, PRODUCER, 'Effective', 'True/Routing']);
  await world.publisher.publishAll(samples);
  await receiver.arrival('newcomer.0', 'ada');
  console.log(`activation applied in the meantime: effective ${Math.round(tookMs)} ms after the start`);
});
