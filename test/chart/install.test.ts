import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHART, outputOf, ROOT, UNVALIDATED } from './support/helm.ts';
import { openTarget, type Target } from './support/target.ts';
import { REQUIRED } from './support/value-sets.ts';

interface Secret {
  readonly metadata: { readonly uid: string };
  readonly data: Readonly<Record<string, string>>;
}

describe('a release under another name and namespace', () => {
  let target: Target;
  beforeAll(async () => {
    target = await openTarget();
  });
  afterAll(() => target?.stop());

  const values = { ...REQUIRED, rootKey: {} };
  const run = async (command: readonly string[], given: object = values) =>
    outputOf(
      await target.helm([...command, ...UNVALIDATED, '--namespace=events'], {
        values: { ...given },
        kubeconfig: target.cluster.kubeconfig,
      }),
    );
  const rootKey = async () =>
    JSON.parse(await target.kubectl('get', 'secret', 'blue-sluice-root-key', '-n=events', '-o=json')) as Secret;
  let first: Secret;

  test('takes over kinds that kubectl installed', async () => {
    await target.kubectl('apply', '--server-side', '-f', join(ROOT, 'crds'));
    const install = ['install', 'blue', CHART, '--create-namespace'];
    await expect(run(install)).rejects.toThrow(/CustomResourceDefinition.*exists and cannot be imported/s);
    await run([...install, '--take-ownership']);
    first = await rootKey();
    expect(Buffer.from(first.data['root.key'] ?? '', 'base64')).toHaveLength(32);
  });

  test('its policies limit its own service accounts', async () => {
    await target.isRefused('events:blue-sluice-facade');
    expect(await target.refusalOf('sluice-system:sluice-facade')).toMatch(/forbidden: User/);
  });

  test('keeps other releases out of its namespace', async () => {
    const { stderr } = await target.helm(
      ['install', 'green', CHART, '--namespace=events', '--set=crds.enabled=false'],
      {
        values,
        kubeconfig: target.cluster.kubeconfig,
      },
    );
    expect(stderr).toContain('namespace events has the installation "blue" of Sluice');
    expect(stderr).toContain('install into another namespace');
  });

  test('keeps other releases without their own name out of the cluster', async () => {
    const elsewhere = ['install', 'green', CHART, '--namespace=green-system', '--dry-run=server'];
    const install = (...flags: string[]) =>
      target.helm([...elsewhere, '--set=crds.enabled=false', ...flags], {
        values: REQUIRED,
        kubeconfig: target.cluster.kubeconfig,
      });
    const { stderr } = await install();
    expect(stderr).toContain('the installation "blue-sluice" in namespace events also has no name');
    expect(stderr).toContain('--set instance=');
    expect(await install('--set=instance=green')).toMatchObject({ code: 0 });
  });

  test('keeps a release with the same names out of the cluster, and says how to change them', async () => {
    const install = (...flags: string[]) =>
      target.helm(
        ['install', 'blue', CHART, '--namespace=green-system', '--dry-run=server', '--set=instance=green', ...flags],
        { values: { ...REQUIRED, crds: { enabled: false } }, kubeconfig: target.cluster.kubeconfig },
      );
    const { stderr } = await install();
    expect(stderr).toContain('the installation in namespace events already uses the prefix "blue-sluice"');
    expect(stderr).toContain('set fullnameOverride');
    expect(await install('--set=fullnameOverride=green')).toMatchObject({ code: 0 });
  });

  test('an upgrade keeps the root key, including a new key that was added', async () => {
    const added = { 'root.key.2': Buffer.alloc(32, 2).toString('base64') };
    const patch = JSON.stringify({ data: added });
    await target.kubectl('patch', 'secret', 'blue-sluice-root-key', '-n=events', '--type=merge', '-p', patch);
    first = { ...first, data: { ...first.data, ...added } };
    await run(['upgrade', 'blue', CHART], { ...values, dispatcher: { replicas: 5 } });
    expect(await rootKey()).toMatchObject({ metadata: { uid: first.metadata.uid }, data: first.data });
    expect(
      await target.kubectl('get', 'deployment', 'blue-sluice-dispatcher', '-n=events', '-o=jsonpath={.spec.replicas}'),
    ).toBe('5');
  });

  test('an upgrade keeps the number of pods that an autoscaler has set', async () => {
    const upgrade = (logLevel: string) =>
      run(['upgrade', 'blue', CHART], { ...values, logLevel, dispatcher: { replicas: null } });
    await upgrade('debug');
    await target.kubectl('scale', 'deployment', 'blue-sluice-dispatcher', '-n=events', '--replicas=7');
    await upgrade('info');
    expect(
      await target.kubectl('get', 'deployment', 'blue-sluice-dispatcher', '-n=events', '-o=jsonpath={.spec.replicas}'),
    ).toBe('7');
  });

  test('a rollback keeps a root key that was added in the meantime', async () => {
    await target.helm(['rollback', 'blue', '1', '--namespace=events'], { kubeconfig: target.cluster.kubeconfig });
    expect(await rootKey()).toMatchObject({ metadata: { uid: first.metadata.uid }, data: first.data });
  });

  test.each([
    ['an upgrade', ['upgrade', 'blue', CHART, '--reuse-values']],
    ['a rollback', ['rollback', 'blue', '1']],
  ])('%s with --force keeps both keys', async (_, command) => {
    const ended = await target.helm([...command, '--force', '--namespace=events'], {
      kubeconfig: target.cluster.kubeconfig,
    });
    expect(ended).toMatchObject({ code: 0 });
    expect(await rootKey()).toMatchObject({ metadata: { uid: first.metadata.uid }, data: first.data });
  });

  test('does not replace a root key that is missing', async () => {
    const set = (key: string | null) => {
      const patch = JSON.stringify({ data: { 'root.key': key } });
      return target.kubectl('patch', 'secret', 'blue-sluice-root-key', '-n=events', '--type=merge', '-p', patch);
    };
    await set(null);
    await expect(run(['upgrade', 'blue', CHART])).rejects.toThrow(
      'the Secret blue-sluice-root-key in namespace events has no root.key',
    );
    await set(first.data['root.key'] as string);
    await run(['upgrade', 'blue', CHART]);
    expect((await rootKey()).data).toEqual(first.data);
  });

  test('does not replace a Secret with root keys that is missing, or has another name', async () => {
    const saved = await target.kubectl('get', 'secret', 'blue-sluice-root-key', '-n=events', '-o=json');
    const { kind, apiVersion, type, metadata, data } = JSON.parse(saved) as Record<string, Record<string, unknown>>;
    const { name, namespace, labels, annotations } = metadata as Record<string, unknown>;
    const upgrade = ['upgrade', 'blue', CHART];
    await expect(run(upgrade, { ...values, fullnameOverride: 'events' })).rejects.toThrow(
      'the Secret events-root-key in namespace events is missing',
    );
    await target.kubectl('delete', 'secret', 'blue-sluice-root-key', '-n=events');
    await expect(run(upgrade)).rejects.toThrow('the Secret blue-sluice-root-key in namespace events is missing');
    const restored = { kind, apiVersion, type, metadata: { name, namespace, labels, annotations }, data };
    outputOf(await target.cluster.kubectl(['create', '-f', '-'], { stdin: JSON.stringify(restored) }));
    await run(upgrade);
    first = await rootKey();
    expect(first.data).toEqual(data);
  });

  describe.each([
    ['redis', 'redis://redis.example.com:6379'],
    ['smtp', 'smtp://mail.example.com'],
  ])('%s.existingSecret, after an upgrade with %s', (section, url) => {
    const upgrade = (given: object) =>
      run(['upgrade', 'blue', CHART], { ...values, ...(section === 'smtp' ? {} : { redis: {} }), [section]: given });
    const urlIn = (name: string) =>
      target.kubectl('get', 'secret', name, '-n=events', '--ignore-not-found', '-o=jsonpath={.data.url}');

    test('can be a new Secret with the name of the documentation', async () => {
      await upgrade({ url });
      const name = `blue-sluice-${section}`;
      await target.kubectl('create', 'secret', 'generic', name, '-n=events', '--from-literal=url=own');
      await upgrade({ existingSecret: name });
      expect(await urlIn(name)).toBe(btoa('own'));
    });

    test('can be a Secret of the parent chart', async () => {
      const name = `parent-${section}`;
      await target.kubectl('create', 'secret', 'generic', name, '-n=events', '--from-literal=url=own');
      await target.kubectl('annotate', 'secret', name, '-n=events', 'meta.helm.sh/release-name=blue');
      await upgrade({ existingSecret: name });
      expect(await urlIn(name)).toBe(btoa('own'));
    });

    test('can only be the Secret of the release if Helm keeps it', async () => {
      await upgrade({ url });
      const name = `blue-sluice-${section}-url`;
      await expect(upgrade({ existingSecret: name })).rejects.toThrow(`kubectl annotate secret ${name} -n events helm`);
      await target.kubectl('annotate', 'secret', name, '-n=events', 'helm.sh/resource-policy=keep');
      await upgrade({ existingSecret: name });
      expect(await urlIn(name)).toBe(btoa(url));
    });
  });

  const releases = async (state: string) => {
    const list = ['list', '--short', '--namespace=events', state];
    return outputOf(await target.helm(list, { kubeconfig: target.cluster.kubeconfig }));
  };

  /** Uninstalls the release. There is nothing that runs the Job of the hook, so this sets its status. */
  async function uninstall(outcome: 'Failed' | 'Complete') {
    const uid = async () => {
      const args = [
        'get',
        'job',
        'blue-sluice-uninstall',
        '-n=events',
        '--ignore-not-found',
        '-o=jsonpath={.metadata.uid}',
      ];
      return target.kubectl(...args);
    };
    const before = await uid();
    const ended = target.helm(['uninstall', 'blue', '--namespace=events'], { kubeconfig: target.cluster.kubeconfig });
    await expect.poll(uid, { timeout: 30_000, interval: 250 }).not.toMatch(new RegExp(`^(${before})?$`));
    const time = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const conditions = outcome === 'Failed' ? ['FailureTarget', 'Failed'] : ['SuccessCriteriaMet', 'Complete'];
    const status = {
      startTime: time,
      ...(outcome === 'Failed' ? { failed: 1 } : { succeeded: 1, completionTime: time }),
      conditions: conditions.map(type => ({ type, status: 'True', reason: 'Test', lastTransitionTime: time })),
    };
    const patch = JSON.stringify({ status });
    const patching = ['--subresource=status', '--type=merge', `--patch=${patch}`];
    await target.kubectl('patch', 'job', 'blue-sluice-uninstall', '-n=events', ...patching);
    return ended;
  }

  test('an uninstallation that is refused does not remove anything', async () => {
    const { code, stderr } = await uninstall('Failed');
    expect(code).not.toBe(0);
    expect(stderr).toContain('job blue-sluice-uninstall failed');
    expect(await releases('--uninstalling')).toBe('blue\n');
    expect(await target.kubectl('get', 'deployments', '-n=events', '-o=name')).toContain(
      'deployment.apps/blue-sluice-dispatcher',
    );
  });

  test('an uninstallation after a refusal keeps the kinds and the root key', async () => {
    const { code } = await uninstall('Complete');
    expect(code).toBe(0);
    expect(await releases('--all')).toBe('');
    expect((await rootKey()).data).toEqual(first.data);
    expect((await target.kubectl('get', 'crd', '-o=name')).trim().split('\n')).toHaveLength(8);
    const kinds = 'deployments,services,serviceaccounts,configmaps,poddisruptionbudgets';
    expect(await target.kubectl('get', kinds, '-n=events', '-l=app.kubernetes.io/instance=blue', '-o=name')).toBe('');
    expect(
      await target.kubectl(
        'get',
        'clusterroles,validatingadmissionpolicies',
        '-l=app.kubernetes.io/instance=blue',
        '-o=name',
      ),
    ).toBe('');
  });

  test('a new installation uses the existing root key', async () => {
    await run(['install', 'blue', CHART, '--take-ownership']);
    expect((await rootKey()).data).toEqual(first.data);
  });
});
