import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { FINALIZER, QUOTA_NAME, WORKSPACE_LABEL } from '../../../src/api/well-known.ts';
import { controllerProbe } from '../../../src/kube/access/policy-probes.ts';
import { LEASE_NAME } from '../../../src/kube/lease.ts';
import type { AnyObject } from '../../../src/kube/object.ts';
import { EVENTS, LEASES, NAMESPACES, RESOURCE_QUOTAS, resourceOf, SECRETS } from '../../../src/kube/resource.ts';
import { type Accounts, applying, isUnlimited, KIND_NAMES, openAccounts, refusal, SPECS } from '../support/accounts.ts';
import { eventually } from '../support/deadline.ts';

// All tests use the token of the controller's service account.
let at: Accounts;

beforeAll(async () => {
  at = await openAccounts(inject('kubeconfig'), 'admission-controller');
});

afterAll(async () => {
  await at?.admin.remove(NAMESPACES, { name: `${at.namespace}-made` });
  await at?.close();
});

const WITH_FINALIZER = ['Account', 'Workspace', 'CatalogStream', 'Package', 'Subscription'] as const;
const CHANGES: Readonly<Record<(typeof WITH_FINALIZER)[number], object>> = {
  Account: { plan: 'Metered' },
  Workspace: { producer: true },
  CatalogStream: { public: false },
  Package: { displayName: null },
  Subscription: { suspended: true },
};

describe('every kind', () => {
  it.each(KIND_NAMES)('%s: can write the status', async kind => {
    const { metadata } = await at.make(kind);
    const body = { metadata: { uid: metadata.uid }, status: { observedGeneration: 1 } };
    const options = { fieldManager: 'sluice-controller', force: true, subresource: 'status' } as const;
    const { status } = await at.controller.apply<AnyObject & { status: object }>(
      resourceOf(kind),
      metadata,
      body,
      options,
    );
    expect(status).toEqual({ observedGeneration: 1 });
  });

  it.each(WITH_FINALIZER)(
    '%s: can set and remove its finalizer, including the last one of a deleted object',
    async kind => {
      const { metadata } = await at.make(kind);
      const others = await at.controller.mergePatch(resourceOf(kind), metadata, {
        metadata: { finalizers: [FINALIZER] },
      });
      expect(others.metadata.finalizers).toEqual([FINALIZER]);
      expect(await at.admin.remove(resourceOf(kind), metadata)).toBe(true);
      await at.controller.mergePatch(resourceOf(kind), metadata, { metadata: { finalizers: [] } });
      expect(await at.admin.get(resourceOf(kind), metadata)).toBeUndefined();
    },
  );

  it.each(WITH_FINALIZER)('%s: cannot change other finalizers', async kind => {
    const { metadata } = await at.make(kind, SPECS[kind], { finalizers: ['example.com/theirs'] });
    const patch = (finalizers: string[]) =>
      at.controller.mergePatch(resourceOf(kind), metadata, { metadata: { finalizers } });
    await patch(['example.com/theirs', FINALIZER]);
    expect(await refusal(patch([FINALIZER]))).toMatch(
      /^403 .*can only set and remove the sluice.dev\/finalizer finalizer/,
    );
    expect(await refusal(patch(['example.com/theirs', FINALIZER, 'example.com/mine']))).toMatch(
      /^403 .*can only set and remove the sluice.dev\/finalizer finalizer/,
    );
    await at.admin.mergePatch(resourceOf(kind), metadata, { metadata: { finalizers: [] } });
  });

  it.each(WITH_FINALIZER)('%s: cannot change the spec, or set an owner', async kind => {
    const { metadata } = await at.make(kind);
    const changing = at.controller.mergePatch(resourceOf(kind), metadata, { spec: CHANGES[kind] });
    expect(await refusal(changing)).toMatch(/^403 .*cannot change the spec/);
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: '00000000-0000-0000-0000-000000000000' };
    const giving = at.controller.mergePatch(resourceOf(kind), metadata, { metadata: { ownerReferences: [owner] } });
    expect(await refusal(giving)).toMatch(/^403 .*cannot change the owners/);
  });

  it.each(KIND_NAMES)('%s: cannot create any objects', async kind => {
    const making = applying(at.controller, kind, at.fresh(kind), { spec: SPECS[kind] });
    expect(await refusal(making)).toMatch(/^403 .*cannot (create|patch) resource/);
    const created = at.controller.create(resourceOf(kind), at.fresh(kind), { spec: SPECS[kind] });
    expect(await refusal(created)).toMatch(/^403 .*cannot create resource/);
  });

  it('can only delete revoked activations', async () => {
    const { metadata } = await at.make('Activation');
    expect(await refusal(at.controller.remove(resourceOf('Activation'), metadata))).toMatch(
      /^403 .*only delete revoked activations/,
    );
    await at.admin.mergePatch(resourceOf('Activation'), metadata, { spec: { revoked: true } });
    expect(await at.controller.remove(resourceOf('Activation'), metadata)).toBe(true);
    for (const kind of KIND_NAMES.filter(each => each !== 'Activation')) {
      const object = await at.make(kind);
      expect(await refusal(at.controller.remove(resourceOf(kind), object.metadata))).toMatch(/^403 .*cannot delete/);
    }
  });
});

describe('other resources', () => {
  const data = { data: { secret: 'eA==' } };

  it.each(['sluice.dev/signing', 'sluice.dev/invitation'])('can write Secrets of the type %s', async type => {
    const name = { namespace: at.namespace, name: `${type.split('/')[1]}-mine` };
    const write = (body: object) =>
      at.controller.apply(SECRETS, name, body, { fieldManager: 'sluice-controller', force: true });
    await write({ type, ...data });
    await write({ type, data: { secret: 'eQ==' } });
  });

  it.each(['Opaque', 'kubernetes.io/service-account-token', 'sluice.dev/ingress-key'])(
    'cannot write Secrets of the type %s',
    async type => {
      const annotations = { 'kubernetes.io/service-account.name': 'sluice-facade' };
      const body = { metadata: { annotations }, type, ...data };
      const name = { namespace: at.namespace, name: 'forbidden' };
      const options = { fieldManager: 'sluice-controller', force: true };
      expect(await refusal(at.controller.apply(SECRETS, name, body, options))).toMatch(
        /^403 .*only write Secrets of the types/,
      );
    },
  );

  it('cannot change other Secrets', async () => {
    const name = { namespace: at.namespace, name: 'theirs' };
    await at.admin.create(SECRETS, name, data);
    const changing = at.controller.mergePatch(SECRETS, name, { data: { secret: 'eQ==' } });
    expect(await refusal(changing)).toMatch(/^403 .*only write Secrets of the types/);
  });

  it('can only list quotas with its own name in all namespaces', async () => {
    const toName = ({ metadata }: AnyObject) => metadata.name;
    const fieldSelector = `metadata.name=${QUOTA_NAME}`;
    const { items } = await at.controller.list(RESOURCE_QUOTAS, toName, { fieldSelector });
    expect(items.filter(name => name !== QUOTA_NAME)).toEqual([]);
    expect(await refusal(at.controller.list(RESOURCE_QUOTAS, toName))).toMatch(/^403 .*cannot list/);
  });

  it('can only write quotas in the namespace of a workspace', async () => {
    const name = { namespace: `${at.namespace}-quota`, name: QUOTA_NAME };
    const label = (workspace: string) => ({ metadata: { labels: { [WORKSPACE_LABEL]: workspace } } });
    const write = () =>
      at.controller.apply(RESOURCE_QUOTAS, name, { spec: { hard: {} } }, { fieldManager: 'sluice-controller' });
    await at.admin.create(NAMESPACES, { name: name.namespace }, label('another'));
    expect(await refusal(write())).toMatch(/^403 .*only write quotas in namespaces/);
    await at.admin.mergePatch(NAMESPACES, { name: name.namespace }, label(name.namespace));
    // The admission of the API server reads labels from a cache.
    const isWritten = () =>
      write().then(
        () => true,
        () => false,
      );
    await eventually('the quota is written', isWritten);
    await at.admin.remove(NAMESPACES, { name: name.namespace });
  });

  it('can only list Leases with its name in all namespaces', async () => {
    const toName = ({ metadata }: AnyObject) => metadata.name;
    const { items } = await at.controller.list(LEASES, toName, { fieldSelector: `metadata.name=${LEASE_NAME}` });
    expect(items.filter(name => name !== LEASE_NAME)).toEqual([]);
    expect(await refusal(at.controller.list(LEASES, toName))).toMatch(/^403 .*cannot list/);
  });

  it('can create namespaces, but not delete them', async () => {
    const name = { name: `${at.namespace}-made` };
    await at.controller.create(NAMESPACES, name, {});
    expect(await refusal(at.controller.remove(NAMESPACES, name))).toMatch(/^403 .*cannot delete/);
    const labelling = at.controller.mergePatch(NAMESPACES, name, { metadata: { labels: { other: 'x' } } });
    expect(await refusal(labelling)).toMatch(/^403 .*cannot patch/);
  });

  it('can record Events, and can only write its Lease in its own namespace', async () => {
    const event = { involvedObject: { kind: 'Workspace', name: 'x' }, type: 'Normal', reason: 'Tested', message: 'x' };
    const name = { namespace: 'default', name: `${at.namespace}-event` };
    await at.controller.create(EVENTS, name, event);
    await at.controller.mergePatch(EVENTS, name, { count: 2 });
    const elsewhere = at.controller.create(
      LEASES,
      { namespace: at.namespace, name: 'sluice-controller' },
      { spec: {} },
    );
    expect(await refusal(elsewhere)).toMatch(/^403 .*cannot create resource "leases"/);
  });
});

it('detects whether the policies limit its service account', async () => {
  const probe = controllerProbe(at.namespace);
  expect(await isUnlimited(at.controller, probe)).toBe(false);
  expect(await isUnlimited(await at.unlimited('controller'), probe)).toBe(true);
});
