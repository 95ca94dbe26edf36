import { expect, test } from 'vitest';
import { objectName } from '../../api/strings.ts';
import { activationId, blockId } from './ids.ts';
import {
  activationObjectName,
  activationObjectNameOf,
  blockObjectName,
  subscriptionObjectName,
} from './object-names.ts';

test('an object created using REST is named after its public id, using the characters that Kubernetes allows', () => {
  const activation = activationObjectName('shop', 'ada', 'store/17 ä');
  expect(activation).toBe(`act-${activationId('shop', 'ada', 'store/17 ä').slice(4)}`);
  expect(activation).toBe(activationObjectNameOf(activationId('shop', 'ada', 'store/17 ä')));
  const block = blockObjectName('shop', 'ada', 'Package', 'basics');
  expect(block).toBe(`blk-${blockId('shop', 'ada', 'Package', 'basics').slice(4)}`);
  const subscription = subscriptionObjectName('shop', 'ada', 'orders');
  for (const name of [activation, block, subscription])
    expect(objectName().parse(name)).toMatch(/^[a-z]{3}-[0-9a-z]{20}$/);
});

test('each pair has a separate name', () => {
  const names = [
    activationObjectName('shop', 'ada', 'a'),
    activationObjectName('shop', 'ada', 'A'),
    activationObjectName('shop', 'bob', 'a'),
    activationObjectName('store', 'ada', 'a'),
    blockObjectName('shop', 'ada', 'Package', 'a'),
    blockObjectName('shop', 'ada', 'CatalogStream', 'a'),
    subscriptionObjectName('shop', 'ada', 'a'),
    subscriptionObjectName('shop', 'bob', 'a'),
    subscriptionObjectName('store', 'ada', 'a'),
  ];
  expect(new Set(names).size).toBe(names.length);
});
