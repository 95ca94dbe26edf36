import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { parseRow } from '../../../src/part/gate/subscription-row.ts';
import { eventually } from '../support/deadline.ts';
import { leads } from '../support/leading.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation, activationName, block, kubectl, type Manifest, tenant } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key', 'closed'] });

const [, , WORKSPACE] = tenant(PRODUCER) as [Manifest, Manifest, Manifest];
const BLOCK = block(PRODUCER, 'blocked', { integration: 'ada', target: { kind: 'CatalogStream', name: QUEUE } });
const LIVE = ['Subscription', SUBSCRIPTION, 'ada', 'Live'] as const;

/** Publishes three events that have to wait for the Block, and returns their ids. */
async function publishWaiting(prefix: string, groupKey = 'key'): Promise<string[]> {
  const { observer, publisher } = world;
  await observer.apply(BLOCK);
  await observer.until([...LIVE, 'False/Blocked']);
  const ids = [0, 1, 2].map(n => `${prefix}.${n}`);
  for (const id of ids) await publisher.publish(makeSample(id, groupKey, id));
  return ids;
}

/** Publishes an event after the Block was removed, and returns all events with this prefix in order of arrival. */
async function arrivedWithLast(prefix: string): Promise<string[]> {
  const { observer, publisher, receiver } = world;
  await observer.remove('Block', 'blocked', PRODUCER);
  await observer.until([...LIVE, 'True/Live']);
  await publisher.publish(makeSample(`${prefix}.last`, 'key', 'last'));
  await receiver.arrival(`${prefix}.last`, 'ada');
  // An attempt can be repeated if the dispatcher was delayed.
  return [...new Set(receiver.attempts.map(({ id }) => id))].filter(id => id.startsWith(prefix));
}

test('a Workspace that is replaced by force keeps its waiting events, and delivers them in order', async () => {
  const waiting = await publishWaiting('replaced');
  await kubectl(world.cluster, ['replace', '--force', '-f', '-'], JSON.stringify(WORKSPACE));
  await world.observer.until([...LIVE, 'False/Blocked']);
  expect(await arrivedWithLast('replaced')).toEqual([...waiting, 'replaced.last']);
});

test('nothing is sent while the Workspace is gone, even after a restart, and what is closed in the meantime stays closed', async () => {
  const { observer, publisher, receiver } = world;
  const waiting = await publishWaiting('gone');
  const closed = await publishWaiting('gone.closed', 'closed');
  await observer.remove('Workspace', PRODUCER);
  await observer.untilGone(['Workspace', PRODUCER, undefined]);
  await observer.until([...LIVE, 'False/NotAdmitted']);
  await observer.remove('Block', 'blocked', PRODUCER);
  await observer.apply(activation(PRODUCER, 'ada', 'closed', { revoked: true }));
  await observer.until([
    'Activation',
    activationName('ada', 'closed'),
    PRODUCER,
    'Ready',
    'Unknown/WaitingForWorkspace',
  ]);
  expect([401, 409]).toContain((await publisher.post(makeSample('gone.refused', 'key', 'refused'))).status);
  // The minute begins again.
  await world.sluice.restart();
  await eventually('a new leader leads', () => leads(world.sluice));
  await delay(2_000);
  expect([...waiting, ...closed].filter(id => receiver.delivered('ada').has(id))).toEqual([]);
  await observer.apply(WORKSPACE);
  expect(await arrivedWithLast('gone')).toEqual([...waiting, 'gone.last']);
});

test('a Workspace that is created again after more than a minute skips its waiting events', async () => {
  const { observer, redis } = world;
  await publishWaiting('late');
  await observer.remove('Workspace', PRODUCER);
  await observer.untilGone(['Workspace', PRODUCER, undefined]);
  const [rows] = (await redis.command('KEYS', '{q:*}:subs:*')) as string[];
  const route = async () => parseRow(String(await redis.command('HVALS', rows as string)))?.route;
  expect(await route()).toBe('paused');
  await eventually('the route is closed', async () => (await route()) === 'closed', { withinMs: 150_000 });
  await observer.apply(WORKSPACE);
  await observer.until([...LIVE, 'False/Blocked']);
  expect(await arrivedWithLast('late')).toEqual(['late.last']);
});
