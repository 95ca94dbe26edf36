import { expect, test } from 'vitest';
import type { Facade } from '../../objects/facade.ts';
import { inboxRefusal } from './inbox-access.ts';

const subscription = { spec: { producer: 'shop', integration: 'ada', stream: 'orders' } } as never;

test.each([
  [['shop/orders'], 'unavailable'],
  [['shop/visits', 'other/orders'], 'subscription_not_live'],
])('if the state of the stream is missing, and the streams are %j, the problem is %s', (streams, code) => {
  const get = (_kind: string, { namespace, name }: { readonly namespace: string; readonly name: string }) =>
    streams.includes(`${namespace}/${name}`) ? {} : undefined;
  const facade = { caches: { get }, wallMs: () => 0 } as unknown as Facade;
  expect(inboxRefusal(facade, { subscription }, 'CLOSED').code).toBe(code);
});

const BLOCK = { metadata: {}, spec: { integration: 'ada', target: { kind: 'CatalogStream', name: 'orders' } } };
test.each([
  [[BLOCK], undefined, 'stream_blocked', ''],
  [[], true, 'subscription_not_live', 'Resume it first'],
  [[], undefined, 'subscription_not_live', 'see its status'],
])('if it is paused by %j, or suspended (%j), the problem is %s', (blocks, suspended, code, detail) => {
  const facade = { caches: { by: () => blocks, list: () => [] } } as unknown as Facade;
  const spec = { ...(subscription as { spec: object }).spec, suspended };
  const refusal = inboxRefusal(facade, { subscription: { spec } as never }, 'PAUSED');
  expect(refusal.code).toBe(code);
  expect(refusal.message).toContain(detail);
});
