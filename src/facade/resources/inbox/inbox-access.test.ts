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
