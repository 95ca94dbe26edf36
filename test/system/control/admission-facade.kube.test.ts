import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { FINALIZER, PAUSED_ANNOTATION } from '../../../src/api/well-known.ts';
import { DEFAULT_LIMITS } from '../../../src/core/limits/limits.ts';
import { facadeProbe } from '../../../src/kube/access/policy-probes.ts';
import type { AnyObject, ObjectName } from '../../../src/kube/object.ts';
import { NAMESPACES, resourceOf, SECRETS } from '../../../src/kube/resource.ts';
import {
  type Accounts,
  applying,
  isUnlimited,
  KIND_NAMES,
  OWNERS,
  openAccounts,
  refusal,
  SPECS,
} from '../support/accounts.ts';

const STRANGERS = [{ issuer: 'https://login.example.com', subject: 'eve', role: 'Owner' }];
const KEY = { id: 'first', sha256: 'a'.repeat(64) };

// All tests use the token of the facade's service account.
let at: Accounts;

beforeAll(async () => {
  at = await openAccounts(inject('kubeconfig'), 'partner-admission');
});

afterAll(() => at?.close());

describe('accounts', () => {
  it('can be created with the free plan, and applied again', async () => {
    const name = at.fresh('Account');
    await applying(at.facade, 'Account', name, { spec: { owners: OWNERS } });
    // A new object has a default status. The first write of the status stores it. Here, this is the write by the
    // controller.
    const status = { status: { observedGeneration: 1 } };
    const writing = { fieldManager: 'sluice-controller', force: true, subresource: 'status' } as const;
    const made = await at.controller.apply(resourceOf('Account'), name, status, writing);
    const again = await applying(at.facade, 'Account', name, { spec: { owners: OWNERS } });
    expect(again.metadata.resourceVersion).toBe(made.metadata.resourceVersion);
  });

  it.each([
    ['the plan Metered', { plan: 'Metered' }],
    ['more tokens', { includedTokens: 10_001 }],
    ['fewer tokens', { includedTokens: 0 }],
  ])('cannot be created with %s', async (_, extra) => {
    const making = applying(at.facade, 'Account', at.fresh('Account'), { spec: { owners: OWNERS, ...extra } });
    expect(await refusal(making)).toMatch(/^403 .*only create accounts with the plan Free and 10000 included tokens/);
    const created = at.facade.create(resourceOf('Account'), at.fresh('Account'), {
      spec: { owners: OWNERS, ...extra },
    });
    expect(await refusal(created)).toMatch(/^403 .*accounts with the plan Free/);
  });

  it('can be created with lower limits, or with the limits of the plan', async () => {
    const limits = { ...DEFAULT_LIMITS.Free, streams: 0 };
    const made = await applying(at.facade, 'Account', at.fresh('Account'), { spec: { owners: OWNERS, limits } });
    expect(made).toMatchObject({ spec: { limits } });
  });

  it.each(Object.entries(DEFAULT_LIMITS.Free) as [string, number][])(
    'cannot be created with higher limits: %s',
    async (name, limit) => {
      const spec = { owners: OWNERS, limits: { [name]: limit + 1 } };
      const making = applying(at.facade, 'Account', at.fresh('Account'), { spec });
      expect(await refusal(making)).toMatch(
        /^403 .*only create accounts with limits up to the defaults of the plan Free/,
      );
    },
  );

  it.each([
    ['its plan', { owners: OWNERS, plan: 'Metered' }],
    ['its tokens', { owners: OWNERS, includedTokens: 99_999 }],
    ['its limits', { owners: OWNERS, limits: { streams: 1 } }],
    ['its owners', { owners: STRANGERS }],
    ['its display name', { owners: OWNERS, displayName: 'Eve' }],
  ])('do not allow changes of %s', async (_, spec) => {
    const { metadata } = await at.make('Account');
    const applied = applying(at.facade, 'Account', metadata, { spec });
    expect(await refusal(applied)).toMatch(/^403 .*cannot change accounts/);
    const patched = at.facade.mergePatch(resourceOf('Account'), metadata, { spec });
    expect(await refusal(patched)).toMatch(/^403 .*cannot change accounts/);
  });

  describe('created by the facade', () => {
    const VIEWER = { issuer: 'https://login.example.com', group: 'auditors', role: 'Viewer' };
    let count = 0;
    const free = () => ({ name: `free-${`${count++}`.padStart(20, '0')}` });

    it('can have their owners changed', async () => {
      const name = free();
      await applying(at.facade, 'Account', name, { spec: { owners: OWNERS } });
      const { spec } = (await applying(at.facade, 'Account', name, {
        spec: { owners: [...OWNERS, VIEWER] },
      })) as unknown as { spec: { owners: unknown } };
      expect(spec.owners).toEqual([...OWNERS, VIEWER]);
    });

    it.each([
      ['its plan', { plan: 'Metered' }, /cannot change accounts/],
      ['its tokens', { includedTokens: 99_999 }, /cannot change accounts/],
      ['its display name', { displayName: 'Eve' }, /cannot change accounts/],
      ['its owners so that there is no Owner', { owners: [VIEWER] }, /without an Owner/],
      ['its owners so that there is only an Admin', { owners: [{ ...VIEWER, role: undefined }] }, /without an Owner/],
    ])('do not allow changes of %s', async (_, change, words) => {
      const name = free();
      await applying(at.facade, 'Account', name, { spec: { owners: OWNERS } });
      const spec = { owners: [...OWNERS, VIEWER], ...change };
      expect(await refusal(at.facade.mergePatch(resourceOf('Account'), name, { spec }))).toMatch(words);
    });

    it.each(['free-', 'free-acme', `free-${'0'.repeat(21)}`, `x-free-${'0'.repeat(20)}`, `free-${'u'.repeat(20)}`])(
      'do not allow changes of the owners of %s, which was not created by the facade',
      async name => {
        const account = { name: name.replace(/-$/, '') };
        await at.admin.apply(resourceOf('Account'), account, { spec: { owners: OWNERS } }, { fieldManager: 'kubectl' });
        const changing = at.facade.mergePatch(resourceOf('Account'), account, {
          spec: { owners: [...OWNERS, VIEWER] },
        });
        expect(await refusal(changing)).toMatch(/^403 .*cannot change accounts/);
      },
    );
  });

  it('cannot be deleted', async () => {
    const { metadata } = await at.make('Account');
    expect(await refusal(at.facade.remove(resourceOf('Account'), metadata))).toMatch(/^403 .*cannot delete/);
  });
});

describe('workspaces', () => {
  it('can be created for an account, as when accepting an invitation', async () => {
    const made = await applying(at.facade, 'Workspace', at.fresh('Workspace'), {
      spec: { account: 'ada', instance: 'blue' },
    });
    expect(made.metadata.name).toMatch(/^partner-/);
  });

  it.each([
    ['another name', 'shop', {}, /only create workspaces named partner-\*/],
    ['a name that only contains the prefix', 'my-partner-shop', {}, /only create workspaces named partner-\*/],
    ['owners', undefined, { owners: STRANGERS }, /create workspaces with spec.owners/],
    ['ingress keys', undefined, { ingressKeys: [KEY] }, /create workspaces with spec.ingressKeys/],
    ['an empty list of ingress keys', undefined, { ingressKeys: [] }, /create workspaces with spec.ingressKeys/],
    ['the mark of a producer', undefined, { producer: true }, /create workspaces with spec.producer/],
  ])('cannot be created with %s', async (_, named, extra, words) => {
    const name = named === undefined ? at.fresh('Workspace') : { name: `${named}-${process.pid}` };
    const spec = { account: 'ada', ...extra };
    for (const make of [
      () => applying(at.facade, 'Workspace', name, { spec }),
      () => at.facade.create(resourceOf('Workspace'), name, { spec }),
    ]) {
      const message = await refusal(make());
      expect(message).toMatch(/^403 .*ValidatingAdmissionPolicy 'sluice-facade-workspaces'/);
      expect(message).toMatch(words);
    }
  });

  it('can have their producer and keys set and removed using server-side apply', async () => {
    const { metadata } = await at.make('Workspace', { account: 'ada', owners: OWNERS });
    const set = (spec: object) =>
      at.facade.apply<AnyObject & { spec: object }>(
        resourceOf('Workspace'),
        metadata,
        { spec },
        { fieldManager: 'sluice-facade' },
      );
    const { spec } = await set({ producer: true, ingressKeys: [KEY] });
    expect(spec).toEqual({ account: 'ada', owners: OWNERS, producer: true, ingressKeys: [KEY] });
    expect((await set({})).spec).toEqual({ account: 'ada', owners: OWNERS });
  });

  it.each([
    ['its owners', { spec: { owners: STRANGERS } }, /spec.owners of a workspace/],
    ['its owners, by removing them', { spec: { owners: null } }, /spec.owners of a workspace/],
    ['its account', { spec: { account: 'eve' } }, /account is immutable|spec.account of a workspace/],
    ['whether it is paused', { metadata: { annotations: { [PAUSED_ANNOTATION]: 'true' } } }, /cannot pause/],
  ])('do not allow changes of %s', async (_, patch, words) => {
    const { metadata } = await at.make('Workspace', { account: 'ada', owners: OWNERS });
    expect(await refusal(at.facade.mergePatch(resourceOf('Workspace'), metadata, patch))).toMatch(words);
  });

  it('can be changed while they are paused, but not resumed', async () => {
    const paused = { annotations: { [PAUSED_ANNOTATION]: 'true', other: 'note' } };
    const { metadata } = await at.make('Workspace', { account: 'ada' }, paused);
    await at.facade.mergePatch(resourceOf('Workspace'), metadata, { spec: { producer: true } });
    const ending = { metadata: { annotations: { [PAUSED_ANNOTATION]: null } } };
    expect(await refusal(at.facade.mergePatch(resourceOf('Workspace'), metadata, ending))).toMatch(
      /^403 .*cannot pause/,
    );
  });
});

describe('integrations', () => {
  const invitedEmail = 'ada@partner.example';
  const set = (metadata: ObjectName, spec: object) =>
    at.facade.mergePatch(resourceOf('Integration'), metadata, { spec });

  it('can be created as an invitation', async () => {
    const made = await applying(at.facade, 'Integration', at.fresh('Integration'), { spec: { invitedEmail } });
    expect(made).toMatchObject({ spec: { invitedEmail } });
  });

  it.each([
    ['workspace', { workspace: 'globex' }],
    ['workspace', { invitedEmail, workspace: 'globex' }],
    ['declined', { invitedEmail, declined: true }],
    ['revoked', { invitedEmail, revoked: false }],
  ])('cannot be created with %s: %o', async (field, spec) => {
    for (const make of [
      () => applying(at.facade, 'Integration', at.fresh('Integration'), { spec }),
      () => at.facade.create(resourceOf('Integration'), at.fresh('Integration'), { spec }),
    ]) {
      const message = await refusal(make());
      expect(message).toMatch(/^403 .*ValidatingAdmissionPolicy 'sluice-facade-integrations'/);
      expect(message).toContain(`the facade cannot create integrations with spec.${field}`);
    }
  });

  it('can be assigned to a workspace once', async () => {
    const { metadata } = await at.make('Integration', { invitedEmail });
    await set(metadata, { workspace: 'globex' });
    for (const workspace of ['initech', '', null]) {
      const message = await refusal(set(metadata, { workspace }));
      expect(message).toMatch(/^422 .*workspace/);
    }
    expect(await refusal(set(metadata, { workspace: 'initech' }))).toContain('workspace is immutable after it is set');
    const stored = await at.admin.get<AnyObject & { spec: object }>(resourceOf('Integration'), metadata);
    expect(stored?.spec).toEqual({ invitedEmail, workspace: 'globex' });
  });

  it.each(['declined', 'revoked'])('allow setting %s, but not resetting it', async field => {
    const { metadata } = await at.make('Integration', { invitedEmail, [field]: false });
    await set(metadata, { [field]: true });
    for (const value of [false, null]) {
      const message = await refusal(set(metadata, { [field]: value }));
      expect(message).toMatch(/^422 /);
      expect(message).toContain(`${field} cannot be changed back to false`);
    }
    const stored = await at.admin.get<AnyObject & { spec: object }>(resourceOf('Integration'), metadata);
    expect(stored?.spec).toEqual({ invitedEmail, [field]: true });
  });

  it('cannot be deleted and created again', async () => {
    const { metadata } = await at.make('Integration');
    expect(await refusal(at.facade.remove(resourceOf('Integration'), metadata))).toMatch(/^403 .*cannot delete/);
  });
});

describe('every kind', () => {
  const specs = { ...SPECS, Integration: { invitedEmail: 'ada@partner.example' } };

  it.each(KIND_NAMES)(
    '%s: can be created using server-side apply, but without a finalizer, owner, or status',
    async kind => {
      const made = await applying(at.facade, kind, at.fresh(kind), { spec: specs[kind] });
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: '00000000-0000-0000-0000-000000000000' };
      const metadatas = [{ finalizers: ['example.com/mine'] }, { ownerReferences: [owner] }];
      for (const metadata of metadatas) {
        const patching = at.facade.mergePatch(resourceOf(kind), made.metadata, { metadata });
        expect(await refusal(patching)).toMatch(/^403 .*ValidatingAdmissionPolicy 'sluice-facade-metadata'/);
        const making = applying(at.facade, kind, at.fresh(kind), { metadata, spec: specs[kind] });
        expect(await refusal(making)).toMatch(/^403 .*ValidatingAdmissionPolicy 'sluice-facade-metadata'/);
      }
      const body = { status: { observedGeneration: 1 } };
      const writing = at.facade.apply(resourceOf(kind), made.metadata, body, {
        fieldManager: 'test',
        subresource: 'status',
      });
      expect(await refusal(writing)).toMatch(/^403 .*cannot patch resource "\w+\/status"/);
    },
  );

  it('cannot have the finalizer of the controller removed', async () => {
    const { metadata } = await at.make('Package', {}, { finalizers: [FINALIZER] });
    const removing = at.facade.mergePatch(resourceOf('Package'), metadata, { metadata: { finalizers: [] } });
    expect(await refusal(removing)).toMatch(/^403 .*finalizers/);
    await at.facade.mergePatch(resourceOf('Package'), metadata, { spec: { displayName: 'Renamed' } });
    await at.admin.mergePatch(resourceOf('Package'), metadata, { metadata: { finalizers: [] } });
  });

  it('can be deleted if it is a Block or a Subscription', async () => {
    for (const kind of ['Block', 'Subscription'] as const) {
      expect(await at.facade.remove(resourceOf(kind), (await at.make(kind)).metadata)).toBe(true);
    }
  });

  it('does not give access to Secrets and namespaces', async () => {
    expect(await refusal(at.facade.get(SECRETS, { namespace: at.namespace, name: 'any' }))).toMatch(
      /^403 .*cannot get/,
    );
    expect(await refusal(at.facade.list(SECRETS, object => object))).toMatch(/^403 .*cannot list/);
    expect(await refusal(at.facade.get(NAMESPACES, { name: at.namespace }))).toMatch(/^403 .*cannot get/);
  });
});

it('detects whether the policies limit its service account', async () => {
  const probe = facadeProbe();
  expect(await isUnlimited(at.facade, probe)).toBe(false);
  expect(await isUnlimited(await at.unlimited('facade'), probe)).toBe(true);
});
