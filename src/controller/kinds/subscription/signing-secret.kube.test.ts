import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { useNamespace } from '../../../../test/support/kubernetes/namespace.ts';
import { FIELD_MANAGER, signingSecretName } from '../../../api/well-known.ts';
import { type Resource, SECRETS } from '../../../kube/resource.ts';
import { mirrorSigningSecret } from './signing-secret.ts';

const QUOTAS: Resource = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  namespaced: true,
};
const { client, namespace } = useNamespace('signing');

async function mirror(name: string) {
  const { context } = createTestContext({});
  const spec = { producer: 'acme', integration: 'globex', stream: 'orders', endpoint: { url: 'https://example.com' } };
  const subscription = objectOf<'Subscription'>(name, spec as never, { namespace });
  return mirrorSigningSecret({ ...context, client }, subscription, { salt: 'a-salt', version: 1 });
}

describe('mirroring a signing secret', () => {
  test('writes the Secret', async () => {
    expect(await mirror('free')).toBeUndefined();
    expect(await client.get(SECRETS, { namespace, name: signingSecretName('free') })).toBeDefined();
  });

  test('does not change a Secret of another type, and reports it', async () => {
    const target = { namespace, name: signingSecretName('taken') };
    const data = { own: 'c2VjcmV0' };
    await client.apply(SECRETS, target, { type: 'Opaque', data }, { fieldManager: FIELD_MANAGER.facade });
    expect(await mirror('taken')).toMatchObject({ reason: 'NameTaken' });
    expect(await client.get(SECRETS, target)).toMatchObject({ type: 'Opaque', data });
  });

  test('is refused if the quota of the namespace is exhausted', async () => {
    const hard = { 'count/secrets': '0' };
    const quota = { namespace, name: 'none' };
    await client.create(QUOTAS, quota, { spec: { hard } });
    // For this test, the status is sufficient. In a cluster, a Kubernetes controller writes it, which is not running
    // here.
    const status = { hard, used: { 'count/secrets': '0' } };
    await client.apply(QUOTAS, quota, { status }, { fieldManager: 'test', force: true, subresource: 'status' });
    // The admission plugin caches quotas for a short time.
    await expect.poll(() => mirror(`spent-${Date.now()}`), { timeout: 20_000 }).toMatchObject({ reason: 'Refused' });
  });
});
