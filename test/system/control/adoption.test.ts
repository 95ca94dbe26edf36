import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { WORKSPACE_LABEL } from '../../../src/api/well-known.ts';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { INGRESS_KEY, PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import {
  activation,
  activationName,
  apply,
  block,
  ingressKey,
  integration,
  kubectl,
  type Manifest,
  stream,
  subscription,
  tenant,
} from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key', 'other'] });

const label = (value: string) =>
  kubectl(world.cluster, ['label', 'namespace', PRODUCER, `${WORKSPACE_LABEL}${value}`, '--overwrite']);

const OF_PRODUCER = [
  ['CatalogStream', QUEUE],
  ['Integration', 'ada'],
  ['Activation', activationName('ada', 'key')],
] as const;

test('objects wait for the workspace while it does not own their namespace', async () => {
  const { observer, publisher, receiver } = world;
  await label('-');
  await observer.until(['Workspace', PRODUCER, undefined, 'Ready', 'False/NamespaceNotAdopted']);
  for (const [kind, name] of OF_PRODUCER) {
    await observer.until([kind, name, PRODUCER, 'Ready', 'Unknown/WaitingForWorkspace']);
  }
  await observer.until(['CatalogStream', QUEUE, PRODUCER, 'Published', 'Unknown/WaitingForWorkspace']);
  await label(`=${PRODUCER}`);
  await observer.until(['CatalogStream', QUEUE, PRODUCER, 'Ready', 'True/QueueReady']);
  expect((await publisher.post(makeSample('after', 'key', 'after'))).status).toBe(202);
  await observer.until(['Activation', activationName('ada', 'key'), PRODUCER, 'Effective', 'True/Routing']);
  await observer.until(['Integration', 'ada', PRODUCER, 'Ready', 'True/Active']);
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  await publisher.publish(makeSample('again', 'key', 'again'));
  await receiver.arrival('again', 'ada');
});

test('events that wait while the label is missing for a moment are delivered in order when it is back', async () => {
  const { observer, publisher, receiver } = world;
  const blocked = block(PRODUCER, 'blocked', { integration: 'ada', target: { kind: 'CatalogStream', name: QUEUE } });
  const live = ['Subscription', SUBSCRIPTION, 'ada', 'Live'] as const;
  const sent = { kept: ['kept.0', 'kept.1', 'kept.2'], closed: ['closed.0', 'closed.1'] };
  await observer.apply(activation(PRODUCER, 'ada', 'closed'));
  await observer.until(['Activation', activationName('ada', 'closed'), PRODUCER, 'Effective', 'True/Routing']);
  await observer.apply(blocked);
  await observer.until([...live, 'False/Blocked']);
  for (const id of sent.kept) await publisher.publish(makeSample(id, 'key', id));
  for (const id of sent.closed) await publisher.publish(makeSample(id, 'closed', id));

  await label('-');
  await observer.until(['Workspace', PRODUCER, undefined, 'Ready', 'False/NamespaceNotAdopted']);
  await observer.until([...live, 'False/NotAdmitted']);
  expect([401, 409]).toContain((await publisher.post(makeSample('refused', 'key', 'refused'))).status);
  // Neither opens the route, and the deactivation is still in force after the label is back.
  await observer.remove('Block', 'blocked', PRODUCER);
  await observer.apply(activation(PRODUCER, 'ada', 'closed', { revoked: true }));
  await observer.until(['Activation', activationName('ada', 'closed'), PRODUCER, 'Effective', 'False/Revoked']);
  await delay(2_000);
  expect(sent.kept.filter(id => receiver.delivered('ada').has(id))).toEqual([]);

  await label(`=${PRODUCER}`);
  await observer.until([...live, 'True/Live']);
  await publisher.publish(makeSample('last', 'key', 'last'));
  await receiver.arrival('last', 'ada');
  // An attempt can be repeated if the dispatcher was delayed.
  const ids = new Set(receiver.attempts.map(({ id }) => id));
  const arrived = [...ids].filter(id => /^(kept|closed|last|refused)/.test(id));
  expect(arrived).toEqual([...sent.kept, 'last']);
});

test('a group key that was revoked without a workspace is closed when the workspace is created again', async () => {
  const { observer, redis } = world;
  const opened = async () => {
    const keys = (await redis.command('KEYS', '*:act')) as string[];
    const fields = await Promise.all(keys.map(key => redis.command('HKEYS', key) as Promise<string[]>));
    return fields.flat().toSorted();
  };
  expect(await opened()).toEqual(['key', 'other']);
  await observer.remove('Workspace', PRODUCER);
  await observer.untilGone(['Workspace', PRODUCER, undefined]);
  await observer.apply(activation(PRODUCER, 'ada', 'other', { revoked: true }));
  await eventually('the gate is closed', async () => !(await opened()).includes('other'), { withinMs: 20_000 });
  const [, , workspace] = tenant(PRODUCER);
  await observer.apply(workspace as Manifest);
  await observer.until(['Activation', activationName('ada', 'other'), PRODUCER, 'Effective', 'False/Revoked']);
  expect(await opened(), tenantId(PRODUCER)).toEqual(['key']);
});

test('a Subscription is not Live while the account of the producer does not exist, or was deleted', async () => {
  const { cluster, observer, receiver, sluice } = world;
  const [namespace, account, workspace] = tenant('late');
  const target = { url: receiver.urlOf('late') };
  await apply(cluster, [
    ...[namespace, workspace].map(each => each as Manifest),
    stream('late', QUEUE),
    ingressKey('late', INGRESS_KEY),
    integration('late', 'ada'),
    activation('late', 'ada', 'key'),
    subscription('ada', 'late', QUEUE, target),
  ]);
  await observer.until(['Workspace', 'late', undefined, 'Ready', 'Unknown/WaitingForAccount']);
  await observer.until(['Subscription', `late-${QUEUE}`, 'ada', 'Live', 'False/InsufficientTokens']);
  const publisher = world.publisherOf(sluice, { producer: 'late' });
  await publisher.publish(makeSample('waits', 'key', 'waits'));
  await observer.apply(account as Manifest);
  await observer.until(['Subscription', `late-${QUEUE}`, 'ada', 'Live', 'True/Live']);
  await receiver.arrival('waits', 'late');

  for (const kind of ['Workspace', 'Account'] as const) {
    await observer.remove(kind, 'late');
    await observer.untilGone([kind, 'late', undefined]);
  }
  await observer.apply(workspace as Manifest);
  await observer.until(['Subscription', `late-${QUEUE}`, 'ada', 'Live', 'False/InsufficientTokens']);
  await publisher.publish(makeSample('unpaid', 'key', 'unpaid'));
  await delay(3_000);
  expect(receiver.delivered('late').has('unpaid')).toBe(false);
  await observer.apply(account as Manifest);
  await receiver.arrival('unpaid', 'late');
});
