import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { FINALIZER, PAUSED_ANNOTATION } from '../../src/api/well-known.ts';
import { controllerProbe, facadeProbe } from '../../src/kube/access/policy-probes.ts';
import { connect, type KubeClient } from '../../src/kube/client.ts';
import type { ObjectName } from '../../src/kube/object.ts';
import { resourceOf, SECRETS } from '../../src/kube/resource.ts';
import { isUnlimited, OWNERS, refusal } from '../system/support/accounts.ts';
import { type InstalledRights, installRights } from './support/rights.ts';
import { VALUE_SETS } from './support/value-sets.ts';

const RELEASE = 'together';
const at = (name: string): ObjectName => ({ namespace: RELEASE, name });
const OWNER = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: '00000000-0000-0000-0000-000000000000' };

let rights: InstalledRights;
let admin: KubeClient;
/** The kubeconfig of the service account that all roles share. */
let all: KubeClient;

beforeAll(async () => {
  admin = connect({ kubeconfig: inject('kubeconfig') });
  rights = await installRights(inject('kubeconfig'), RELEASE, VALUE_SETS['all in one'] ?? {});
  all = await rights.open('all');
  // The API server reads policies once a second.
  for (const probe of [facadeProbe(), controllerProbe(RELEASE)]) {
    await vi.waitUntil(async () => !(await isUnlimited(all, probe)), { timeout: 20_000 });
  }
});

afterAll(async () => {
  await Promise.all([all?.close(), admin?.close()]);
});

const applying = (name: ObjectName, body: object, kind: Parameters<typeof resourceOf>[0] = 'Package') =>
  all.apply(resourceOf(kind), name, body, { fieldManager: 'test', force: true });

describe('the service account of mode=all', () => {
  test('is limited, as both roles detect when they start', async () => {
    expect(await isUnlimited(all, controllerProbe(RELEASE))).toBe(false);
    expect(await isUnlimited(all, facadeProbe())).toBe(false);
  });

  test('has the facade permissions: creates objects, changes their specs, and deletes Blocks', async () => {
    await applying(at('made'), { spec: { displayName: 'Made' } });
    const changed = await applying(at('made'), { spec: { displayName: 'Changed' } });
    expect(changed).toMatchObject({ spec: { displayName: 'Changed' } });
    const block = { spec: { integration: 'ada', target: { kind: 'Package', name: 'made' } } };
    await applying(at('block'), block, 'Block');
    expect(await all.remove(resourceOf('Block'), at('block'))).toBe(true);
    expect(await applying({ name: 'free' }, { spec: { owners: OWNERS } }, 'Account')).toMatchObject({
      spec: { plan: 'Free' },
    });
  });

  test('has the controller permissions: finalizers, revoked activations, its Secrets, and statuses', async () => {
    const name = at('finalized');
    await admin.apply(resourceOf('Package'), name, { spec: {} }, { fieldManager: 'admin' });
    await all.mergePatch(resourceOf('Package'), name, { metadata: { finalizers: [FINALIZER] } });
    await all.mergePatch(resourceOf('Package'), name, { metadata: { finalizers: [] } });
    const status = { status: { observedGeneration: 1 } };
    await all.apply(resourceOf('Package'), name, status, { fieldManager: 'test', force: true, subresource: 'status' });
    const activation = { integration: 'ada', groupKey: 'key', revoked: true };
    await admin.apply(resourceOf('Activation'), at('revoked'), { spec: activation }, { fieldManager: 'admin' });
    expect(await all.remove(resourceOf('Activation'), at('revoked'))).toBe(true);
    const secret = { type: 'sluice.dev/signing', data: { secret: 'eA==' } };
    await all.apply(SECRETS, at('mirror'), secret, { fieldManager: 'test' });
  });

  test.each<[string, () => Promise<unknown>, RegExp]>([
    [
      'keep an object with a finalizer of others',
      () => applying(at('kept'), { metadata: { finalizers: ['example.com/mine'] }, spec: {} }),
      /^403 .*can only set and remove the sluice\.dev\/finalizer finalizer/,
    ],
    [
      'give an object an owner',
      () => applying(at('owned'), { metadata: { ownerReferences: [OWNER] }, spec: {} }),
      /^403 .*cannot change the owners/,
    ],
    [
      'delete an activation that is not revoked',
      async () => {
        const spec = { integration: 'ada', groupKey: 'open' };
        await admin.apply(resourceOf('Activation'), at('open'), { spec }, { fieldManager: 'admin' });
        return all.remove(resourceOf('Activation'), at('open'));
      },
      /^403 .*only delete revoked activations/,
    ],
    [
      'write a Secret of another type',
      () => all.apply(SECRETS, at('other'), { type: 'Opaque' }, { fieldManager: 'test' }),
      /^403 .*only write Secrets of the types/,
    ],
    [
      'create an account with another plan',
      () => applying({ name: 'metered' }, { spec: { plan: 'Metered', owners: OWNERS } }, 'Account'),
      /^403 .*only create accounts with the plan/,
    ],
    [
      'pause a workspace',
      () =>
        applying(
          { name: 'partner-paused' },
          { metadata: { annotations: { [PAUSED_ANNOTATION]: 'true' } }, spec: { account: 'ada' } },
          'Workspace',
        ),
      /^403 .*cannot pause workspaces/,
    ],
  ])('cannot %s', async (_, write, message) => {
    expect(await refusal(write())).toMatch(message);
  });
});

test('has the limits of the controller if the REST API is disabled', async () => {
  const { open, objects } = await installRights(inject('kubeconfig'), 'together-less', {
    ...VALUE_SETS['all in one'],
    oidc: {},
    facade: { enabled: false },
  });
  expect(objects.filter(({ metadata }) => /-(facade|all-objects)/.test(metadata.name))).toEqual([]);
  const alone = await open('all');
  await expect.poll(() => isUnlimited(alone, controllerProbe('together-less')), { timeout: 20_000 }).toBe(false);
  const { metadata } = await admin.apply(resourceOf('Package'), at('theirs'), { spec: {} }, { fieldManager: 'admin' });
  const changing = alone.mergePatch(resourceOf('Package'), metadata as ObjectName, { spec: { displayName: 'x' } });
  expect(await refusal(changing)).toMatch(/^403 .*cannot change the spec/);
  await alone.close();
});
