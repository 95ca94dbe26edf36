import * as fc from 'fast-check';
import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { FINALIZER } from '../../../src/api/well-known.ts';
import { activationId, publicId } from '../../../src/core/ids/ids.ts';
import type { Caches } from '../../../src/facade/caches/caches.ts';
import { START_MS } from '../../../src/record/testing/tenant.ts';

export const PARTNERS = ['p0', 'p1', 'p2'] as const;
const TARGETS = [
  { kind: 'CatalogStream', name: 'orders' },
  { kind: 'CatalogStream', name: 'refunds' },
  { kind: 'Package', name: 'basic' },
  { kind: 'Package', name: 'extra' },
] as const;

const partner = fc.record({
  is: fc.constantFrom('active', 'active', 'active', 'pending', 'expired', 'declined', 'revoked'),
  subscription: fc.constantFrom('plain', 'plain', 'plain', 'suspended', 'unprotected', 'deleting', 'twice', 'none'),
  /** True if the subscription was admitted before the stream became deprecated. */
  admitted: fc.boolean(),
});
/** All state on which the routing of one producer's stream `orders` depends. */
export const tenantState = fc.record({
  isPublic: fc.boolean(),
  plan: fc.constantFrom('Metered', 'Free', 'spent'),
  partners: fc.tuple(partner, partner, partner),
  packages: fc.record({ basic: fc.subarray(['orders', 'refunds']), extra: fc.subarray(['orders', 'refunds']) }),
  archived: fc.boolean(),
  blocks: fc.array(
    fc.record({
      integration: fc.constantFrom(...PARTNERS),
      target: fc.constantFrom(...TARGETS),
      onUnblock: fc.constantFrom('Continue', 'SkipToNow'),
    }),
    { maxLength: 3 },
  ),
  activations: fc.array(
    fc.record({
      integration: fc.constantFrom(...PARTNERS),
      groupKey: fc.constantFrom('a', 'b'),
      revoked: fc.constantFrom(false, false, false, true),
      deleting: fc.constantFrom(false, false, false, true),
    }),
    { minLength: 2, maxLength: 8 },
  ),
});
export type TenantState = typeof tenantState extends fc.Arbitrary<infer S> ? S : never;

interface AnyObject {
  readonly metadata: { readonly namespace: string; readonly name: string };
  readonly spec: Record<string, unknown>;
}

/** Returns the custom resources for a state, in a separate workspace. */
export function objectsOf(given: TenantState, shop: string) {
  const object = (namespace: string, name: string, spec: object, metadata: object = {}, status: object = {}) => ({
    metadata: { namespace, name, uid: `${shop}-${namespace}-${name}`, finalizers: [FINALIZER], ...metadata },
    spec: spec as Record<string, unknown>,
    status,
  });
  const inPast = { creationTimestamp: new Date(START_MS - 1_000_000).toISOString() };
  const isGoing = (deleting: boolean) => (deleting ? { deletionTimestamp: inPast.creationTimestamp } : {});
  const SPEC = {
    active: (name: string) => ({ workspace: `${shop}-${name}` }),
    pending: () => ({ invitedEmail: 'a@b.example' }),
    expired: () => ({ invitedEmail: 'a@b.example' }),
    declined: (name: string) => ({ workspace: `${shop}-${name}`, declined: true }),
    revoked: (name: string) => ({ workspace: `${shop}-${name}`, revoked: true }),
  };
  const integrations = given.partners.map(({ is }, i) => {
    const name = PARTNERS[i] as string;
    const expiresAt = new Date(is === 'expired' ? START_MS - 600_000 : START_MS + 1_000_000).toISOString();
    const accepted = { type: 'Accepted', status: 'True', lastTransitionTime: inPast.creationTimestamp };
    const status = is === 'pending' || is === 'expired' ? { invitation: { expiresAt } } : { conditions: [accepted] };
    return object(shop, name, SPEC[is as keyof typeof SPEC](name), inPast, status);
  });
  const subscriptions = given.partners.flatMap(({ subscription, admitted }, i) => {
    if (subscription === 'none') return [];
    const name = PARTNERS[i] as string;
    const spec = { producer: shop, integration: name, stream: 'orders', suspended: subscription === 'suspended' };
    const status = admitted ? { admittedAt: inPast.creationTimestamp } : {};
    const metadata = {
      ...inPast,
      ...isGoing(subscription === 'deleting'),
      ...(subscription === 'unprotected' ? { finalizers: [] } : {}),
    };
    const one = object(`${shop}-${name}`, 'first', spec, metadata, status);
    return subscription === 'twice' ? [one, object(`${shop}-${name}`, 'second', spec, inPast, status)] : [one];
  });
  return {
    workspace: object('', shop, { account: shop }),
    stream: object(shop, 'orders', { public: given.isPublic, retention: '1h' }, inPast),
    integrations,
    subscriptions,
    packages: Object.entries(given.packages).map(([name, streams]) =>
      object(shop, name, { streams, archived: given.archived }),
    ),
    blocks: given.blocks.map((spec, i) => object(shop, `block-${i}`, spec)),
    activations: given.activations.map(({ deleting, ...spec }, i) =>
      object(shop, `activation-${i}`, spec, isGoing(deleting)),
    ),
  };
}

/** Returns the same objects as in the facade's caches. */
export function worldOf(objects: ReturnType<typeof objectsOf>): Pick<Caches, 'by'> {
  const find = (kind: KindName, value: string): readonly AnyObject[] => {
    switch (kind) {
      case 'Subscription':
        return objects.subscriptions.filter(({ spec }) => `${spec.producer}/${spec.integration}` === value);
      case 'Block':
        return objects.blocks.filter(
          ({ metadata, spec }) => publicId('Integration', metadata.namespace, String(spec.integration)) === value,
        );
      case 'Package':
        return objects.packages.filter(({ metadata, spec }) =>
          (spec.streams as string[]).some(stream => `${metadata.namespace}/${stream}` === value),
        );
      case 'Activation':
        return objects.activations.filter(
          ({ metadata, spec }) =>
            activationId(metadata.namespace, String(spec.integration), String(spec.groupKey)) === value,
        );
      default:
        return [];
    }
  };
  return { by: ((kind: KindName, _index: string, value: string) => find(kind, value)) as unknown as Caches['by'] };
}
