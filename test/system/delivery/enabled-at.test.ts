import { it } from 'vitest';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation, activationName, subscription } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: ['key'] });

it.each([
  ['1969-12-31T23:59:59Z', 'before'],
  ['0001-01-01T00:00:00Z', 'long-before'],
  ['9999-12-31T23:59:59Z', 'long-after'],
])('a subscription that was enabled at %s does not affect others', async (enabledAt, groupKey) => {
  const { receiver, observer, publisher } = world;
  await observer.apply(subscription('ada', PRODUCER, QUEUE, { url: receiver.urlOf('ada'), enabledAt }));
  await observer.apply(activation(PRODUCER, 'bob', groupKey));
  await observer.until(['Activation', activationName('bob', groupKey), PRODUCER, 'Effective', 'True/Routing']);
  await publisher.publish(makeSample(groupKey, groupKey, 'x'));
  await receiver.arrival(groupKey, 'bob');
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  await publisher.publish(makeSample(`key-${groupKey}`, 'key', 'x'));
  for (const partner of ['ada', 'bob']) await receiver.arrival(`key-${groupKey}`, partner);
});
