import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { leads } from '../support/leading.ts';
import { makeSample, type Publisher } from '../support/publisher.ts';
import { PRODUCER, type Running, settle } from '../support/small-world.ts';
import { activation, kubectl } from '../support/world.ts';

let installed: Installation;
let world: Running;
let publisher: Publisher;
const controllers: Sluice[] = [];

beforeAll(async () => {
  installed = await install();
  controllers.push(await installed.start({ role: 'controller' }));
  const [ingress] = await Promise.all((['ingress', 'dispatcher'] as const).map(role => installed.start({ role })));
  world = await settle(installed, { partners: ['ada'], groupKeys: ['always'] });
  publisher = world.publisherOf(ingress as Sluice);
  controllers.push(await installed.start({ role: 'controller' }));
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
});

async function leaderAndStandby(): Promise<[Sluice, Sluice]> {
  const { value } = await eventually('exactly one controller leads', async () => {
    const [first, second] = controllers as [Sluice, Sluice];
    const [a, b] = [await leads(first), await leads(second)];
    const pair: [Sluice, Sluice] = a ? [first, second] : [second, first];
    return a !== b && pair;
  });
  return value;
}

const holder = () =>
  kubectl(installed.cluster, [
    'get',
    'lease',
    'sluice-controller',
    '--namespace=sluice-system',
    '-o=jsonpath={.spec.holderIdentity}',
  ]);

/** Applies an activation for a new group key. Returns the time until it is effective, in milliseconds. */
async function activate(groupKey: string, withinMs = 60_000): Promise<number> {
  const startedMs = performance.now();
  await world.observer.apply(activation(PRODUCER, 'ada', groupKey));
  const { name } = activation(PRODUCER, 'ada', groupKey).metadata;
  await world.observer.until(['Activation', name, PRODUCER, 'Effective', 'True/Routing'], withinMs);
  return performance.now() - startedMs;
}

/** Returns whether an event is delivered along with a later event of another group key. */
async function isRouted(id: string, groupKey: string): Promise<boolean> {
  await publisher.publish(makeSample(id, groupKey, id));
  await publisher.publish(makeSample(`${id}.past`, 'always', id));
  await eventually('the next event is delivered', async () => world.receiver.delivered('ada').has(`${id}.past`));
  await delay(500);
  return world.receiver.delivered('ada').has(id);
}

async function expectRouted(id: string, groupKey: string): Promise<void> {
  await publisher.publish(makeSample(id, groupKey, id));
  await world.receiver.arrival(id, 'ada');
}

it('the standby continues if the leader is killed', async () => {
  const [leader] = await leaderAndStandby();
  console.log(`with a leader: ${Math.round(await activate('first'))} ms`);
  await leader.kill('SIGKILL');
  const tookMs = await activate('second');
  console.log(`leader killed: an activation is effective after ${Math.round(tookMs)} ms`);
  await expectRouted('second.0', 'second');
  await leader.restart();
});

it('the standby continues immediately if the leader is stopped in order', async () => {
  const [leader] = await leaderAndStandby();
  const before = await holder();
  const exit = await leader.stop();
  expect(exit).toEqual({ code: 0, signal: null });
  // A leader that stops releases its Lease, which would otherwise be valid for 15 s.
  expect(await holder()).not.toBe(before);
  const tookMs = await activate('third');
  console.log(`leader stopped: an activation is effective after ${Math.round(tookMs)} ms`);
  await leader.restart();
});

it('a leader that was suspended during its term cannot write', async () => {
  const { observer } = world;
  const [leader, standby] = await leaderAndStandby();
  await activate('fourth');
  await leader.kill('SIGSTOP');
  const stoppedMs = performance.now();
  // The work queue of the suspended controller would open the pair because it was open when the controller was
  // suspended.
  await observer.apply(activation(PRODUCER, 'ada', 'fourth', { revoked: true }));
  const { name } = activation(PRODUCER, 'ada', 'fourth').metadata;
  await observer.until(['Activation', name, PRODUCER, 'Effective', 'False/Revoked']);
  console.log(`leader suspended: a revocation is effective after ${Math.round(performance.now() - stoppedMs)} ms`);
  await eventually('the standby leads', () => leads(standby));
  await leader.kill('SIGCONT');
  await delay(3_000);
  await eventually('it knows that it no longer leads', async () => !(await leads(leader)));
  expect(leader.running()).toBe(true);
  expect(await observer.conditionOf('Activation', name, PRODUCER, 'Effective')).toBe('False/Revoked');
  expect(await isRouted('fourth.0', 'fourth')).toBe(false);
  await expectRouted('first.0', 'first');
});
