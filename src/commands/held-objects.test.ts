import { expect, test } from 'vitest';
import { FINALIZER } from '../api/well-known.ts';
import { pick } from './held-objects.ts';

const metadata = { namespace: 'ada', name: 'orders', uid: '1', resourceVersion: '2', finalizers: [FINALIZER] };
const spec = { producer: 'shop', stream: 'orders', integration: 'ada' };
const condition = { type: 'Ready', status: 'True', reason: 'Live', message: 'the subscription is live' };

test('keeps nothing of the status of an object without undelivered events', () => {
  const status = { delivery: { backlog: '0', deadLetters: true }, conditions: [condition] };
  expect(pick('Subscription', { metadata, spec, status })).toEqual({
    kind: 'Subscription',
    metadata,
    spec: { producer: 'shop', stream: 'orders' },
    status: {},
  });
});

test('keeps the fields that show undelivered events, and the finalizers of other controllers', () => {
  const held = { ...metadata, finalizers: ['other', FINALIZER] };
  const draining = { ...condition, reason: 'Draining' };
  const status = { delivery: { backlog: '1+' }, conditions: [condition, draining] };
  expect(pick('CatalogStream', { metadata: held, spec: {}, status })).toEqual({
    kind: 'CatalogStream',
    metadata: held,
    spec: {},
    status: { delivery: { backlog: '1+' }, conditions: [{ type: 'Ready', reason: 'Draining' }] },
  });
});
