import { beforeAll, expect, it } from 'vitest';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation, activationName, apply, kubectl, stream, subscription } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: ['key'] });

/** Removes rules from a CRD, as if it belonged to another version of Sluice. The paths are relative to the spec. */
async function removeRules(plural: string, ...paths: readonly string[]): Promise<void> {
  const spec = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties';
  const patch = paths.map(path => ({ op: 'remove', path: `${spec}/${path}` }));
  const crd = `${plural}.sluice.dev`;
  await kubectl(world.cluster, ['patch', 'crd', crd, '--type=json', '-p', JSON.stringify(patch)]);
}

/** Applies an object as soon as the API server uses the changed CRD. */
const applyOnceAllowed = (object: Parameters<typeof apply>[1][number]) =>
  eventually('the object is allowed', () => apply(world.cluster, [object]).then(() => true));

beforeAll(async () => {
  const endpoint = 'endpoint/properties';
  await removeRules('subscriptions', `${endpoint}/maxPerSecond/maximum`);
  await removeRules('catalogstreams', 'retention/x-kubernetes-validations');
});

it('a Subscription that cannot be applied is paused alone, and its events are delivered once it is corrected', async () => {
  const { receiver, observer, publisher } = world;
  const endpoint = { url: receiver.urlOf('ada') };
  await applyOnceAllowed(subscription('ada', PRODUCER, QUEUE, { ...endpoint, maxPerSecond: 100_000 }));
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/SpecRefused']);
  await observer.untilEvent(`Subscription/${SUBSCRIPTION} SpecRefused`);
  const message = '-o=jsonpath={.status.conditions[?(@.type=="Live")].message}';
  expect(await kubectl(world.cluster, ['get', 'wsub', SUBSCRIPTION, '-n', 'ada', message])).toContain(
    'Change the value: maxPerSecond: 100000 is out of range',
  );
  const refused = () => world.sluice.metric('sluice_controller_subscriptions_not_live', { reason: 'SpecRefused' });
  await expect.poll(refused, { timeout: 20_000 }).toBe(1);

  await observer.apply(activation(PRODUCER, 'bob', 'later'));
  await observer.until(['Activation', activationName('bob', 'later'), PRODUCER, 'Effective', 'True/Routing']);
  for (const groupKey of ['key', 'later']) await publisher.publish(makeSample(`bad-${groupKey}`, groupKey, 'x'));
  for (const groupKey of ['key', 'later']) await receiver.arrival(`bad-${groupKey}`, 'bob');
  expect([...receiver.delivered('ada')]).toEqual([]);

  await apply(world.cluster, [subscription('ada', PRODUCER, QUEUE, endpoint)]);
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  await receiver.arrival('bad-key', 'ada');
  await expect.poll(refused, { timeout: 20_000 }).toBe(0);
});

it('a stream with a retention that cannot be parsed does not affect others', async () => {
  const { receiver, observer, publisher } = world;
  await applyOnceAllowed(stream(PRODUCER, 'refunds', { retention: '1d' }));
  await observer.until(['CatalogStream', 'refunds', PRODUCER, 'Ready', 'False/ReconcileFailed']);
  await observer.apply(activation(PRODUCER, 'bob', 'even-later'));
  await observer.until(['Activation', activationName('bob', 'even-later'), PRODUCER, 'Effective', 'True/Routing']);
  await publisher.publish(makeSample('even-later', 'even-later', 'x'));
  await receiver.arrival('even-later', 'bob');
  await apply(world.cluster, [stream(PRODUCER, 'refunds', { retention: '24h' })]);
  await observer.until(['CatalogStream', 'refunds', PRODUCER, 'Ready', 'True/QueueReady']);
});
