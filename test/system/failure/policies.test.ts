import { afterAll, beforeAll, expect, test } from 'vitest';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import type { Sluice } from '../../support/sluice.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from '../rest/support/facade-world.ts';
import { eventually } from '../support/deadline.ts';
import type { Problem, RestClient } from '../support/rest-client.ts';
import { apply, kubectl } from '../support/world.ts';

let world: FacadeWorld;
let facade: Sluice;
let ada: RestClient;
let shop: string;

beforeAll(async () => {
  world = await openFacadeWorld();
  const { cluster } = world.installation;
  await applyPermissions(cluster);
  await world.start({ role: 'controller' });
  facade = await world.start({ role: 'facade', kubeconfig: await kubeconfigOf(cluster, 'sluice-facade') });
  ({ shop = '' } = await makeTenants(world, { shop: 'ada' }));
  ada = await world.as(facade, 'ada');
});
afterAll(() => world?.stop());

const publish = (name: string) =>
  ada.put<Problem['body']>('/waas/streams', { producerTenantPublicId: shop, name, isPublic: true });

function expectProblem({ status, headers, body }: Problem, expected: number, code: string, detail: string): void {
  expect({ status, code: body.code, detail: body.detail, retryAfter: headers.get('retry-after') }).toEqual({
    status: expected,
    code,
    detail: expect.stringContaining(detail),
    retryAfter: null,
  });
}

test('a policy of the operator results in a permanent refusal with its message', async () => {
  const policy = { apiVersion: 'admissionregistration.k8s.io/v1', metadata: { name: 'no-secrets' } };
  await apply(world.installation.cluster, [
    {
      ...policy,
      kind: 'ValidatingAdmissionPolicy',
      spec: {
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ['sluice.dev'],
              apiVersions: ['*'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['catalogstreams'],
            },
          ],
        },
        validations: [
          {
            expression: "!object.metadata.name.startsWith('secret')",
            message: 'streams are not secret here',
            reason: 'Forbidden',
          },
          { expression: "!object.metadata.name.startsWith('hidden')", message: 'streams are not hidden here' },
        ],
      },
    },
    {
      ...policy,
      kind: 'ValidatingAdmissionPolicyBinding',
      spec: { policyName: 'no-secrets', validationActions: ['Deny'] },
    },
  ] as never);
  let probes = 0;
  // A repeated call changes nothing, so no policy is asked.
  const isRefused = async () => (await publish(`secret-${probes++}`)).body.code === 'refused_by_policy';
  await eventually('the policy is in effect', isRefused);
  expectProblem(await publish('secret'), 409, 'refused_by_policy', 'streams are not secret here');
  expectProblem(await publish('hidden'), 409, 'refused_by_policy', 'streams are not hidden here');
  expect((await publish('orders')).status).toBe(200);
});

test('a quota of the operator results in a permanent refusal that contains its name', async () => {
  const { cluster } = world.installation;
  const hard = { 'count/catalogstreams.sluice.dev': '0' };
  await apply(cluster, [
    { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'few', namespace: 'shop' }, spec: { hard } },
  ] as never);
  // There is no controller manager to write this.
  const status = JSON.stringify({ status: { hard, used: hard } });
  await kubectl(cluster, [
    'patch',
    'resourcequota',
    'few',
    '-n',
    'shop',
    '--subresource=status',
    '--type=merge',
    '-p',
    status,
  ]);
  let probes = 0;
  const isRefused = async () => (await publish(`more-${probes++}`)).body.code === 'refused_by_policy';
  await eventually('the quota is in effect', isRefused);
  expectProblem(await publish('more'), 409, 'refused_by_policy', 'exceeded quota: few');
  await kubectl(cluster, ['delete', 'resourcequota', 'few', '-n', 'shop']);
});

test('a facade without its permissions responds that the operator must act', async () => {
  const { cluster } = world.installation;
  await kubectl(cluster, [
    'patch',
    'clusterrole',
    'sluice-facade',
    '--type=json',
    '-p',
    JSON.stringify([
      {
        op: 'replace',
        path: '/rules',
        value: [{ apiGroups: ['sluice.dev'], resources: ['*'], verbs: ['get', 'list', 'watch'] }],
      },
    ]),
  ]);
  await eventually(
    'the permission was removed',
    async () => (await publish('late')).body.code === 'missing_permission',
  );
  expectProblem(await publish('late'), 500, 'missing_permission', 'operator');
});
