import type { AnyObject } from '../../../src/kube/object.ts';
import { objectOf } from './test-context.ts';

const FINALIZED = { finalizers: ['sluice.dev/finalizer'] };

/** Creates one object of each kind in the workspace `name`, and the subscription of its partner. */
export function objectsOfTenant(name: string, partner: string) {
  const endpoint = { url: 'https://example.com/' };
  return {
    account: objectOf<'Account'>(name, { plan: 'Free', includedTokens: 10_000, owners: [] } as never, {
      namespace: undefined,
    }),
    workspace: objectOf<'Workspace'>(name, { account: name } as never, { namespace: undefined, metadata: FINALIZED }),
    stream: objectOf<'CatalogStream'>('orders', { public: true, retention: '1h', deletionPolicy: 'Retain' } as never, {
      namespace: name,
      metadata: { uid: `stream-${name}`, ...FINALIZED },
    }),
    integration: objectOf<'Integration'>('ada', { workspace: partner } as never, { namespace: name }),
    subscription: objectOf<'Subscription'>(
      'orders',
      { producer: name, integration: 'ada', stream: 'orders', endpoint } as never,
      {
        namespace: partner,
        metadata: { uid: `sub-${name}`, ...FINALIZED },
        status: { admittedAt: '2026-01-01T00:00:00Z', signing: { salt: 'a-salt' } },
      },
    ),
  };
}

/** Creates the activation of a group key for the integration. */
export function activationOf(name: string, groupKey: string, spec: object = {}): AnyObject {
  const full = { integration: 'ada', groupKey, ...spec } as never;
  return objectOf<'Activation'>(`ada-${groupKey}`, full, { namespace: name });
}
