import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { activationId, blockId, publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { type Caches, createCaches } from '../../../src/facade/caches/caches.ts';
import { payForLookups } from '../../../src/facade/caches/lookups.ts';
import type { AnyObject, ObjectName } from '../../../src/kube/object.ts';
import { resourceOf } from '../../../src/kube/resource.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { systemClock } from '../../../src/time/clock.ts';
import { type Accounts, KIND_NAMES, openAccounts, SPECS } from '../support/accounts.ts';

// The caches of a facade that has not received any data yet. They use the token of its service account.
let at: Accounts;
let caches: Caches;
/** Counts the objects in list responses of the API server. */
const listed: number[] = [];

beforeAll(async () => {
  at = await openAccounts(inject('kubeconfig'), 'lookups');
  const list = async (...args: Parameters<typeof at.facade.list>) => {
    const answer = await at.facade.list(...args);
    listed.push(answer.items.length);
    return answer;
  };
  caches = createCaches(
    { ...at.facade, list: list as typeof at.facade.list },
    systemClock,
    createLogger({ level: 'silent' }),
  );
});
afterAll(() => at?.close());

/** Sets an object's status, like the controller. */
const settle = (kind: KindName, { metadata }: AnyObject, status: object) =>
  at.controller.apply(
    resourceOf(kind),
    metadata,
    { status },
    { fieldManager: 'sluice-controller', force: true, subresource: 'status' },
  );

/** Returns a unique spec, and the public id of an object using it. */
function wanted(kind: KindName, { namespace = '', name }: ObjectName, n: number): { spec: object; id: string } {
  if (kind === 'Activation') {
    return { spec: { integration: 'ada', groupKey: `key-${n}` }, id: activationId(namespace, 'ada', `key-${n}`) };
  }
  if (kind === 'Block') {
    const target = { kind: 'Package', name: `all-${n}` } as const;
    return { spec: { integration: 'ada', target }, id: blockId(namespace, 'ada', target.kind, target.name) };
  }
  return { spec: SPECS[kind], id: kind === 'Workspace' ? tenantId(name) : publicId(kind, namespace, name) };
}

test.each(KIND_NAMES)('%s: is found by its public id as soon as its status contains the id', async kind => {
  let charges = 0;
  const find = (id: string) =>
    payForLookups(
      () => void charges++,
      () => caches.findLive(kind, id),
    );
  for (let n = 0; n < 10; n++) {
    const name = at.fresh(kind);
    const { spec, id } = wanted(kind, name, n);
    const made = await at.admin.apply<AnyObject>(resourceOf(kind), name, { spec }, { fieldManager: 'admin' });
    listed.splice(0);
    expect(await find(id)).toBeUndefined();
    await settle(kind, made, { publicId: id, observedGeneration: 1 });
    expect((await find(id))?.metadata.uid).toBe(made.metadata.uid);
    expect(listed).toEqual([0, 1]);
  }
  expect(charges).toBe(20);
});

test('an invitation is found by the hash of its token', async () => {
  const made = await at.make('Integration', { invitedEmail: 'bob@example.com' });
  const [tokenHash, other] = ['a'.repeat(64), 'b'.repeat(64)];
  await settle('Integration', made, {
    invitation: { tokenHash, issuedAt: new Date().toISOString(), expiresAt: new Date().toISOString() },
  });
  listed.splice(0);
  expect((await caches.findBy('Integration', 'tokenHash', tokenHash))?.metadata.name).toBe(made.metadata.name);
  expect(await caches.findBy('Integration', 'tokenHash', other)).toBeUndefined();
  expect(listed).toEqual([1, 0]);
});
