import { expect, test } from 'vitest';
import { PAUSED_ANNOTATION } from '../../api/well-known.ts';
import type { Refusal } from '../../http/refusal.ts';
import type { Facade } from '../objects/facade.ts';
import { ROUTES } from '../routes.ts';
import { type AnyCall, reach } from './reach.ts';

/** The calls that close something. They are listed explicitly instead of being derived, like the next list. */
const CLOSING = [
  'blockPackage',
  'blockStream',
  'deactivate',
  'deleteIngressKey',
  'revokeActivation',
  'revokeIntegration',
  'unsubscribe',
];
/** The calls that only concern stored events. */
const OF_EVENTS = [
  'acknowledgeEvents',
  'pullEvents',
  'recoverEvents',
  'replayEvent',
  'replayEvents',
  'sendTestEvent',
  'skipEvent',
  'skipEvents',
];

const paused = { metadata: { name: 'shop', annotations: { [PAUSED_ANNOTATION]: 'true' } } };
const owned = { name: 'shop', role: 'Owner', workspace: paused };
const facade = {
  ownership: {
    tenant: async () => owned,
    integration: async () => ({ producer: 'shop', recipient: owned }),
  },
  caches: { get: () => paused },
} as unknown as Facade;
const call = { params: { tenant: 'ten_x', integration: 'int_x' }, body: { producerTenantPublicId: 'ten_x' } };

test('a paused workspace only accepts calls that close something or concern stored events', async () => {
  const taken: string[] = [];
  for (const route of ROUTES.filter(({ method, access }) => method !== 'GET' && /producer|recipient/.test(access))) {
    const refused: unknown = await reach(facade, route, call as unknown as AnyCall).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (refused === undefined) taken.push(route.operation);
    else expect([route.operation, (refused as Refusal).code]).toEqual([route.operation, 'workspace_paused']);
  }
  expect(taken.toSorted()).toEqual([...CLOSING, ...OF_EVENTS].toSorted());
});
