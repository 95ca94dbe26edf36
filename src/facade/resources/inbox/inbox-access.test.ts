import { expect, test } from 'vitest';
import type { Facade } from '../../objects/facade.ts';
import { inboxRefusal, openEvent } from './inbox-access.ts';

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

test.each(['PENDING', 'REVOKED'] as const)(
  'if the integration is %s, the problem is integration_not_active',
  answer => {
    expect(inboxRefusal({} as Facade, { subscription }, answer).code).toBe('integration_not_active');
  },
);

test('an event of a subscription that does not exist is unknown', async () => {
  const facade = { caches: { find: async () => undefined } } as unknown as Facade;
  const integration = { producer: 'shop', name: 'ada', recipient: { name: 'ada' } } as never;
  const opened = openEvent(facade, integration, `evt_${'0'.repeat(35)}`);
  await expect(opened).rejects.toMatchObject({ code: 'unknown_event' });
  await expect(openEvent(facade, integration, 'evt_1')).rejects.toMatchObject({ code: 'malformed_id' });
});
