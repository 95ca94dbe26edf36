import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sluice, SluiceRole } from '../../support/sluice.ts';
import { faultsOf, readInbox } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { countStatuses, makeSamples, type Publisher } from '../support/publisher.ts';
import { PRODUCER, type Running, SUBSCRIPTION, settle } from '../support/small-world.ts';

const PARTNERS = ['ada', 'bob'];
const GROUP_KEYS = Array.from({ length: 100 }, (_, i) => `customer-${i}`);

let installed: Installation;
let world: Running;
const replicas = new Map<SluiceRole, Sluice[]>();
const publishers: Publisher[] = [];
let accepted = 0;

beforeAll(async () => {
  installed = await install();
  await installed.start({ role: 'controller' });
  for (const role of ['ingress', 'dispatcher'] as const) {
    replicas.set(role, [await installed.start({ role }), await installed.start({ role })]);
  }
  // On a busy machine, an attempt that times out would be repeated.
  world = await settle(installed, { partners: PARTNERS, groupKeys: GROUP_KEYS, endpoint: { timeoutSeconds: 20 } });
  for (const ingress of of('ingress')) publishers.push(world.publisherOf(ingress));
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
});

const of = (role: SluiceRole): Sluice[] => replicas.get(role) ?? [];

/**
 * Publishes events using both ingresses with half of the keys each, and calls `disturb` after some of them were
 * delivered.
 * @param options.perKey events of each key, so many that they are delivered for as long as `disturb` takes
 */
async function run(
  name: string,
  disturb: () => Promise<void>,
  { perKey = 30, crashes = 1 }: { readonly perKey?: number; readonly crashes?: number } = {},
): Promise<void> {
  const { receiver } = world;
  receiver.clear();
  const samples = makeSamples({ groupKeys: GROUP_KEYS, perKey, prefix: `${name}.` });
  const half = GROUP_KEYS.length / 2;
  const isFirst = ({ groupKey = '' }: { readonly groupKey?: string }) => GROUP_KEYS.indexOf(groupKey) < half;
  const [one, other] = publishers as [Publisher, Publisher];
  const publishing = Promise.all([
    one.publishAll(samples.filter(isFirst), 8),
    other.publishAll(
      samples.filter(sample => !isFirst(sample)),
      8,
    ),
  ]);
  publishing.catch(() => {});
  await eventually('some events are delivered', async () => receiver.delivered('ada').size > samples.length / 5);
  const disturbedMs = performance.now();
  await disturb();
  const published = (await publishing).flatMap(each => [...each.values()]);
  expect(countStatuses(published)).toEqual({ 202: samples.length });
  const all = async () => PARTNERS.every(partner => receiver.delivered(partner).size >= samples.length);
  await eventually('all events are delivered', all, { withinMs: 90_000 });
  const arrivals = receiver.attempts.filter(({ subscription }) => subscription === 'ada').map(({ atMs }) => atMs);
  const gaps = arrivals.map((atMs, i) => atMs - (arrivals[i - 1] ?? atMs));
  console.log(
    `${name}: all delivered ${Math.round(performance.now() - disturbedMs)} ms after the disturbance, longest gap ` +
      `${Math.round(Math.max(...gaps))} ms, sent twice ${receiver.attempts.length - PARTNERS.length * samples.length}, ` +
      `published again ${published.filter(({ tries }) => tries > 1).length}`,
  );
  for (const partner of PARTNERS) expect(faultsOf(receiver, partner, samples, { crashes })).toEqual([]);
  accepted += samples.length;
  for (const partner of PARTNERS) {
    const { routed, counters } = await readInbox(installed, { producer: PRODUCER, partner, name: SUBSCRIPTION });
    expect(routed).toHaveLength(accepted);
    expect(counters['routed']).toBe(accepted);
  }
}

it('shares the work between two replicas of each role', async () => {
  await run('two', async () => {}, { perKey: 10 });
});

it('does not send any event twice if each process is stopped in order and started again', async () => {
  await run(
    'roll',
    async () => {
      for (const role of ['ingress', 'dispatcher'] as const) {
        for (const each of of(role)) {
          expect(await each.stop()).toEqual({ code: 0, signal: null });
          await each.restart();
        }
      }
    },
    { crashes: 0 },
  );
});

// Kills each dispatcher in turn because either of them may have done the work.
it.each([0, 1])('continues with the other dispatcher when dispatcher %i is killed', async index => {
  const victim = of('dispatcher')[index] as Sluice;
  try {
    await run(`dispatcher-${index}`, () => victim.kill('SIGKILL'));
  } finally {
    await victim.restart();
  }
});

it('fences a suspended dispatcher that was evicted by the others', async () => {
  await run(
    'sleep',
    async () => {
      for (const each of of('dispatcher')) {
        await each.kill('SIGSTOP');
        await delay(8_000);
        await each.kill('SIGCONT');
      }
    },
    // A dispatcher that was suspended during its attempts repeats them once more, in addition to the dispatcher that
    // took over.
    { crashes: 2 },
  );
});
