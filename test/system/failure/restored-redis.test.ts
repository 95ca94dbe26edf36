import { cp, rm } from 'node:fs/promises';
import { expect, it } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation, activationName, apply, block } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: ['key', 'revoked'], separateRoles: true });

// As in docs/operations.md.
it('after Redis was restored, and the controller was started first, gates that were closed since the backup stay closed', async () => {
  const { cluster, observer, processes, publisher, receiver, redis } = world;
  receiver.behave(() => 503);
  expect((await publisher.publish(makeSample('stored', 'key', 'stored'))).status).toBe(202);
  const [, folder] = (await redis.command('CONFIG', 'GET', 'dir')) as [string, string];
  await cp(`${folder}/appendonlydir`, `${folder}/backup`, { recursive: true });

  const target = { kind: 'CatalogStream', name: QUEUE };
  await apply(cluster, [
    block(PRODUCER, 'blocked', { integration: 'bob', target }),
    activation(PRODUCER, 'ada', 'revoked', { revoked: true }),
  ]);
  await observer.until(['Subscription', SUBSCRIPTION, 'bob', 'Live', 'False/Blocked']);
  await observer.until(['Activation', activationName('ada', 'revoked'), PRODUCER, 'Effective', 'False/Revoked']);
  for (const each of processes.values()) await each.stop();
  await redis.kill();
  await rm(`${folder}/appendonlydir`, { recursive: true });
  await cp(`${folder}/backup`, `${folder}/appendonlydir`, { recursive: true });
  await redis.restart();

  const [controller, ...others] = [...processes.values()] as [Sluice, ...Sluice[]];
  await controller.restart();
  const applied = async () =>
    (await controller.logLines()).filter(({ msg }) => msg === 'applied all workspaces').length;
  await eventually('all workspaces are applied', async () => (await applied()) === 2);
  receiver.behave(() => 204);
  for (const each of others) await each.restart();
  for (const [id, groupKey] of [
    ['closed', 'revoked'],
    ['open', 'key'],
  ] as const) {
    expect((await publisher.publish(makeSample(id, groupKey, id))).status).toBe(202);
  }
  // Redis was killed, so its file may contain a transaction without an end.
  const persistence = async () => String(await redis.command('INFO', 'persistence'));
  await eventually('the file is rewritten', async () => (await persistence()).includes('aof_rewrites:1\r\n'), {
    withinMs: 20_000,
  });
  for (const id of ['stored', 'open']) await receiver.arrival(id, 'ada');
  expect([...receiver.delivered('ada')].toSorted()).toEqual(['open', 'stored']);
  expect([...receiver.delivered('bob')]).toEqual([]);
});
