import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHART, outputOf, UNVALIDATED, type ValueSet } from './support/helm.ts';
import { openTarget, type Target } from './support/target.ts';
import { REQUIRED } from './support/value-sets.ts';

const VALUES = { ...REQUIRED, rootKey: {} };

let target: Target;
beforeAll(async () => {
  target = await openTarget();
  outputOf(await helm(['install', 'sluice', CHART, '--create-namespace'], VALUES));
});
afterAll(() => target?.stop());

const helm = (args: readonly string[], values?: ValueSet) =>
  target.helm([...args, ...UNVALIDATED, '--namespace=events'], {
    ...(values === undefined ? {} : { values }),
    kubeconfig: target.cluster.kubeconfig,
  });

test('only an installation searches the cluster for other installations, unless this is disabled', async () => {
  const rules = [
    { apiGroups: ['*'], resources: ['*'], verbs: ['get'] },
    { apiGroups: [''], resources: ['secrets', 'configmaps'], verbs: ['list'] },
  ];
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'deployer' } };
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'deployer' };
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'deployer' }];
  for (const object of [
    { ...rbac, kind: 'ClusterRole', rules },
    { ...rbac, kind: 'ClusterRoleBinding', roleRef, subjects },
  ]) {
    const { stderr } = await target.cluster.kubectl(['create', '-f', '-'], { stdin: JSON.stringify(object) });
    expect(stderr).toBe('');
  }
  const run = (...args: string[]) =>
    target.helm([...args, '--dry-run=server', '--kube-as-user=deployer'], {
      values: VALUES,
      kubeconfig: target.cluster.kubeconfig,
    });
  // The authorizer learns of the binding by a watch.
  const upgrade = () => run('upgrade', 'sluice', CHART, '--namespace=events');
  await expect.poll(upgrade, { timeout: 20_000, interval: 500 }).toMatchObject({ code: 0 });
  const install = ['install', 'green', CHART, '--namespace=green-system', '--set=instance=green,crds.enabled=false'];
  expect((await run(...install)).stderr).toContain('cannot list resource "clusterrolebindings"');
  expect(await run(...install, '--set=instanceCheck=false')).toMatchObject({ code: 0 });
});

describe('an upgrade with other values', () => {
  const upgrade = (values: ValueSet) => helm(['upgrade', 'sluice', CHART], { ...VALUES, ...values });
  const kinds = async () => (await target.kubectl('get', 'crd', '-o=name')).split('\n').filter(Boolean);

  test('does not delete the CustomResourceDefinitions, even if they were not to be kept before', async () => {
    const before = await kinds();
    expect(before).toHaveLength(8);
    expect(await upgrade({ crds: { keep: false } })).toMatchObject({ code: 0 });
    const { code, stderr } = await upgrade({ crds: { enabled: false, keep: true } });
    expect(await kinds()).toEqual(before);
    expect(code).not.toBe(0);
    const [, command = ''] = /run: kubectl (.*)/.exec(stderr) ?? [];
    await target.kubectl(...command.split(' '));
    expect(await upgrade({ crds: { enabled: false } })).toMatchObject({ code: 0 });
    expect(await kinds()).toEqual(before);
  });

  test('does not change the name of the installation', async () => {
    const { code, stderr } = await upgrade({ instance: 'blue' });
    expect(code).not.toBe(0);
    expect(stderr).toContain('instance is "blue", but this release was installed with ""');
    expect(await upgrade({ instance: '' })).toMatchObject({ code: 0 });
    // As in docs/install.md, for an installation that has never led.
    for (const instance of ['blue', '']) {
      expect(await upgrade({ instance, instanceCheck: false })).toMatchObject({ code: 0 });
    }
  });
});
