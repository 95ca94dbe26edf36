import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { describeCrd } from '../../../src/kube/definitions/crds.ts';
import { type Issuer, startIssuer } from '../../support/issuer.ts';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { apply, conditionOf, kubectl, type Manifest, tenant } from '../support/world.ts';

const CRDS = join(import.meta.dirname, '..', '..', '..', 'crds');

let installed: Installation;
let controller: Sluice;
let issuer: Issuer;

beforeAll(async () => {
  [installed, issuer] = await Promise.all([install(), startIssuer()]);
  await applyPermissions(installed.cluster);
});

afterAll(async () => {
  await installed?.stop();
  await issuer?.close();
});

/** Returns the CustomResourceDefinition of Account from a version that had no public ids. */
function olderAccounts(): Manifest {
  const crd = structuredClone(describeCrd(KINDS.Account));
  crd.metadata.annotations = { 'sluice.dev/schema': 'older' };
  const schema = crd.spec.versions[0]?.schema.openAPIV3Schema as unknown as {
    readonly properties: { readonly status: { readonly properties: Record<string, unknown> } };
  };
  delete schema.properties.status.properties.publicId;
  const [version] = crd.spec.versions as unknown as [{ selectableFields?: readonly { readonly jsonPath: string }[] }];
  version.selectableFields = version.selectableFields?.filter(({ jsonPath }) => jsonPath !== '.status.publicId') ?? [];
  return crd as unknown as Manifest;
}

it('a controller with an old CustomResourceDefinition does not lead, and reports what to apply', async () => {
  const { cluster } = installed;
  await apply(cluster, [olderAccounts()]);
  const kubeconfig = await kubeconfigOf(cluster, 'sluice-controller');
  controller = await installed.start({ role: 'controller', kubeconfig, unready: true });
  const reported =
    'controller: CustomResourceDefinition accounts.sluice.dev is older and does not contain status.publicId. To update it, run kubectl apply --server-side -f crds/ with the files of this version\n';
  await eventually('the controller reports this', async () => (await controller.readyz())[1] === reported);
  expect((await controller.readyz())[0]).toBe(503);
  expect(await controller.metric('sluice_role_impaired', { reason: 'OutdatedCRDs' })).toBe(1);
  await apply(cluster, tenant('shop'));
  expect(await kubectl(cluster, ['get', 'leases', '-n', 'sluice-system', '-o', 'name'])).toBe('');

  await kubectl(cluster, ['apply', '--server-side', '-f', CRDS]);
  await eventually('the controller is ready', async () => (await controller.readyz())[1] === 'ok\n');
  const led = async () => (await conditionOf(cluster, 'account/shop', undefined)) === 'True/LedgerReady';
  await eventually('the controller leads', led);
});

it('a facade with the controller permissions reports the missing role until it is bound', async () => {
  const { cluster } = installed;
  const kubeconfig = await kubeconfigOf(cluster, 'sluice-controller');
  const facade = await installed.start({ role: 'facade', kubeconfig, env: issuer.env, unready: true });
  const reported =
    /^facade: Kubernetes does not grant create \w+\.sluice\.dev, .*: bind the ClusterRole sluice-facade of/;
  await eventually('the facade reports this', async () => reported.test((await facade.readyz())[1]));
  expect((await facade.readyz())[0]).toBe(503);
  expect(await facade.metric('sluice_role_impaired', { reason: 'Forbidden' })).toBe(1);

  const bind = ['create', 'clusterrolebinding', 'also-facade', '--clusterrole=sluice-facade'];
  await kubectl(cluster, [...bind, '--serviceaccount=sluice-system:sluice-controller']);
  await eventually('the facade is ready', async () => (await facade.readyz())[1] === 'ok\n');
});

it('a controller that starts without Redis fills its caches, and leads once Redis responds', async () => {
  const { cluster, redis } = installed;
  await controller.stop();
  await redis.kill();
  const late = await installed.start({ role: 'controller', unready: true });
  const url = redis.url.replace('//', '//sluice-controller@');
  const reported = `controller: Redis at ${url} (SLUICE_REDIS_URL) does not answer: connect ECONNREFUSED`;
  const waitsForRedisAlone = async () => {
    const [status, body] = await late.readyz();
    return status === 503 && body.includes(reported) && !body.includes('caches');
  };
  await eventually('the controller reports this, with filled caches', waitsForRedisAlone);
  await apply(cluster, tenant('late'));
  await redis.restart();
  await eventually('the controller is ready', async () => (await late.readyz())[0] === 200);
  const led = async () => (await conditionOf(cluster, 'account/late', undefined)) === 'True/LedgerReady';
  await eventually('the controller leads', led);
  expect(late.running()).toBe(true);
});
