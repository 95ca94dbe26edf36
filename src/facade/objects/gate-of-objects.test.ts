import { expect, test } from 'vitest';
import { FINALIZER } from '../../api/well-known.ts';
import { publicId, tenantId } from '../../core/ids/ids.ts';
import { judgeGate } from '../../core/routing/gate-verdict.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';
import { factsInForce } from '../resources/insight/explain.ts';
import { gateOfObjects } from './gate-of-objects.ts';

const object = (namespace: string, name: string, spec: object, more: object = {}) => ({
  metadata: { namespace, name, uid: `uid-${name}`, finalizers: [FINALIZER], ...more },
  spec,
});
const workspace = object('', 'shop', { account: 'shop' }) as unknown as Cached<'Workspace'>;
const stream = object('shop', 'orders', { public: true, retention: '1h' }) as unknown as Cached<'CatalogStream'>;
const integration = object('shop', 'buyer', { workspace: 'buyer' }) as unknown as Cached<'Integration'>;
const subscription = object('buyer', 'shop-orders', { producer: 'shop', integration: 'buyer', stream: 'orders' });
const activation = object('shop', 'a', { integration: 'buyer', groupKey: 'k' });

interface Objects {
  readonly Subscription?: readonly object[];
  readonly Activation?: readonly object[];
  readonly Block?: readonly object[];
  readonly Package?: readonly object[];
  readonly integration?: Cached<'Integration'>;
  readonly stream?: Cached<'CatalogStream'>;
}

function ask({ integration: to = integration, stream: from = stream, ...kinds }: Objects) {
  const there: Objects = { Subscription: [subscription], Activation: [activation], ...kinds };
  const caches = { by: (kind: keyof Objects) => there[kind] ?? [] } as unknown as Pick<Caches, 'by'>;
  const tenant = { publicId: tenantId('shop'), name: 'shop', workspace, role: 'Owner' as const };
  return gateOfObjects(caches, { tenant, stream: from, integration: to, groupKey: 'k', nowMs: 0 });
}

const reasonOf = (objects: Objects) => judgeGate(ask(objects)).reason;
const blockOf = (kind: string, name: string) => object('shop', 'b', { integration: 'buyer', target: { kind, name } });
const isClosed = { ...integration, spec: { workspace: 'buyer', revoked: true } } as Cached<'Integration'>;
const isPending = { ...integration, spec: { invitedEmail: 'a@b.example' } } as Cached<'Integration'>;

test('an event is routed if all objects exist', () => {
  expect(ask({})).toEqual({
    groupKey: 'k',
    integration: 'active',
    activated: true,
    subscription: 'open',
    subscriptionId: publicId('Subscription', 'buyer', 'shop-orders'),
  });
});

test.each<[string, Objects, string | undefined]>([
  ['no activation', { Activation: [] }, 'not_activated'],
  [
    'one of two that is revoked',
    { Activation: [activation, { ...activation, spec: { revoked: true } }] },
    'not_activated',
  ],
  [
    'one that is being deleted',
    { Activation: [{ ...activation, metadata: { deletionTimestamp: 'x' } }] },
    'not_activated',
  ],
  ['no subscription', { Subscription: [] }, 'not_subscribed'],
  [
    'one to another stream',
    { Subscription: [object('buyer', 's', { ...subscription.spec, stream: 'x' })] },
    'not_subscribed',
  ],
  ['one that is not protected yet', { Subscription: [{ ...subscription, metadata: { name: 's' } }] }, 'not_subscribed'],
  ['a suspended one', { Subscription: [object('buyer', 's', { ...subscription.spec, suspended: true })] }, 'suspended'],
  ['a block of the stream', { Block: [blockOf('CatalogStream', 'orders')] }, 'blocked_stream'],
  ['a block of another', { Block: [blockOf('CatalogStream', 'x')] }, undefined],
  [
    'a block of a package with it',
    { Block: [blockOf('Package', 'p')], Package: [object('shop', 'p', { streams: ['orders'] })] },
    'blocked_package',
  ],
  [
    'both: the stream takes precedence',
    {
      Block: [blockOf('Package', 'p'), blockOf('CatalogStream', 'orders')],
      Package: [object('shop', 'p', { streams: ['orders'] })],
    },
    'blocked_stream',
  ],
  ['a revoked integration', { integration: isClosed }, 'integration_closed'],
  ['an open invitation', { integration: isPending }, 'integration_pending'],
  [
    'a deprecated stream that was never subscribed to',
    { stream: { ...stream, spec: { ...stream.spec, public: false } } as Cached<'CatalogStream'> },
    'not_subscribed',
  ],
])('%s', (_what, objects, expected) => {
  expect(reasonOf(objects)).toBe(expected);
});

const open = { integration: 'active', activated: true, subscription: 'open' } as const;

test.each([
  ['open', open, 'open', undefined, undefined],
  ['nothing to pay with', open, 'open', 'insufficient_tokens', 'insufficient_tokens'],
  ['paused, and nothing to pay with', { ...open, subscription: 'paused' }, 'open', 'insufficient_tokens', 'paused'],
  ['a queue that is lost', open, 'missing', undefined, 'state_missing'],
  ['a tenant that is lost', { ...open, subscription: 'missing' }, 'open', undefined, 'state_missing'],
  ['an integration that is lost', { ...open, integration: 'missing' }, 'open', undefined, 'state_missing'],
  ['a stream that is closing continues', open, 'closing', undefined, undefined],
] as const)('applied, %s', (_what, reading, state, short, expected) => {
  expect(judgeGate(factsInForce(reading, { state }, 'k', short)).reason).toBe(expected);
});
