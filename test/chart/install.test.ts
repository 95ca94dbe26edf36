import { spawn } from 'node:child_process';
import { cp, readFile, symlink } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureBinaries } from '../support/kubernetes/binaries.ts';
import { type Cluster, startCluster } from '../support/kubernetes/cluster.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';
import { CHART, type Helm, openHelm, outputOf, ROOT } from './support/helm.ts';
import { REQUIRED } from './support/value-sets.ts';

let cluster: Cluster;
let helm: Helm;
let folder: TemporaryFolder;

/** Starts a cluster of its own: the kinds and the roles have the same names in every installation. */
async function begin(options: Parameters<typeof startCluster>[0] = {}): Promise<void> {
  [cluster, helm, folder] = await Promise.all([startCluster(options), openHelm(), temporaryFolder('install')]);
}

async function end(): Promise<void> {
  await cluster?.stop();
  await folder?.remove();
}

async function kubectl(...args: string[]): Promise<string> {
  return outputOf(await cluster.kubectl(args));
}

/** Creates an account that the policies deny to the facade, as a dry run. @returns the error message */
async function refusalOf(account: string): Promise<string> {
  const object = {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'Account',
    metadata: { name: 'never-stored' },
    spec: { plan: 'Metered', owners: [{ issuer: 'https://issuer.example', subject: 'nobody', role: 'Owner' }] },
  };
  const args = ['create', '--dry-run=server', `--as=system:serviceaccount:${account}`, '-f', '-'];
  return (await cluster.kubectl(args, { stdin: JSON.stringify(object) })).stderr;
}

/** The API server reads policies once a second. */
async function isRefused(account: string): Promise<void> {
  await expect.poll(() => refusalOf(account), { timeout: 20_000 }).toContain('can only create accounts with the plan');
}

interface Secret {
  readonly metadata: { readonly uid: string };
  readonly data: Readonly<Record<string, string>>;
}

describe('a release under another name and namespace', () => {
  beforeAll(() => begin());
  afterAll(end);

  const values = { ...REQUIRED, rootKey: {} };
  const run = async (command: readonly string[], given: object = values) =>
    outputOf(await helm([...command, '--namespace=events'], { values: { ...given }, kubeconfig: cluster.kubeconfig }));
  const rootKey = async () =>
    JSON.parse(await kubectl('get', 'secret', 'blue-sluice-root-key', '-n=events', '-o=json')) as Secret;
  let first: Secret;

  test('takes over kinds that kubectl installed', async () => {
    await kubectl('apply', '--server-side', '-f', join(ROOT, 'crds'));
    const install = ['install', 'blue', CHART, '--create-namespace'];
    await expect(run(install)).rejects.toThrow(/CustomResourceDefinition.*exists and cannot be imported/s);
    await run([...install, '--take-ownership']);
    first = await rootKey();
    expect(Buffer.from(first.data['root.key'] ?? '', 'base64')).toHaveLength(32);
  });

  test('its policies limit its own service accounts', async () => {
    await isRefused('events:blue-sluice-facade');
    expect(await refusalOf('sluice-system:sluice-facade')).toMatch(/forbidden: User/);
  });

  test('keeps other releases out of its namespace', async () => {
    const { stderr } = await helm(['install', 'green', CHART, '--namespace=events', '--set=crds.enabled=false'], {
      values,
      kubeconfig: cluster.kubeconfig,
    });
    expect(stderr).toContain('namespace events has the installation "blue" of Sluice');
    expect(stderr).toContain('install into another namespace');
  });

  test('an upgrade keeps the root key', async () => {
    await run(['upgrade', 'blue', CHART], { ...values, dispatcher: { replicas: 5 } });
    expect(await rootKey()).toMatchObject({ metadata: { uid: first.metadata.uid }, data: first.data });
    expect(
      await kubectl('get', 'deployment', 'blue-sluice-dispatcher', '-n=events', '-o=jsonpath={.spec.replicas}'),
    ).toBe('5');
  });

  const releases = async (state: string) => {
    const list = ['list', '--short', '--namespace=events', state];
    return outputOf(await helm(list, { kubeconfig: cluster.kubeconfig }));
  };

  /** Uninstalls the release. Nothing runs the Job of the hook here, so it gets a status by hand. */
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
      return kubectl(...args);
    };
    const before = await uid();
    const ended = helm(['uninstall', 'blue', '--namespace=events'], { kubeconfig: cluster.kubeconfig });
    await expect.poll(uid, { timeout: 30_000 }).not.toMatch(new RegExp(`^(${before})?$`));
    const time = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const conditions = outcome === 'Failed' ? ['FailureTarget', 'Failed'] : ['SuccessCriteriaMet', 'Complete'];
    const status = {
      startTime: time,
      ...(outcome === 'Failed' ? { failed: 1 } : { succeeded: 1, completionTime: time }),
      conditions: conditions.map(type => ({ type, status: 'True', reason: 'Test', lastTransitionTime: time })),
    };
    const patch = JSON.stringify({ status });
    const patching = ['--subresource=status', '--type=merge', `--patch=${patch}`];
    await kubectl('patch', 'job', 'blue-sluice-uninstall', '-n=events', ...patching);
    return ended;
  }

  test('a refused uninstall removes nothing', async () => {
    const { code, stderr } = await uninstall('Failed');
    expect(code).not.toBe(0);
    expect(stderr).toContain('job blue-sluice-uninstall failed');
    expect(await releases('--uninstalling')).toBe('blue\n');
    expect(await kubectl('get', 'deployments', '-n=events', '-o=name')).toContain(
      'deployment.apps/blue-sluice-dispatcher',
    );
  });

  test('what is uninstalled, after a refusal, leaves the kinds and the root key', async () => {
    const { code } = await uninstall('Complete');
    expect(code).toBe(0);
    expect(await releases('--all')).toBe('');
    expect((await rootKey()).data).toEqual(first.data);
    expect((await kubectl('get', 'crd', '-o=name')).trim().split('\n')).toHaveLength(8);
    const kinds = 'deployments,services,serviceaccounts,configmaps,poddisruptionbudgets';
    expect(await kubectl('get', kinds, '-n=events', '-l=app.kubernetes.io/instance=blue', '-o=name')).toBe('');
    expect(
      await kubectl('get', 'clusterroles,validatingadmissionpolicies', '-l=app.kubernetes.io/instance=blue', '-o=name'),
    ).toBe('');
  });

  test('installed again, it finds the root key', async () => {
    await run(['install', 'blue', CHART, '--take-ownership']);
    expect((await rootKey()).data).toEqual(first.data);
  });
});

const PAGE = await readFile(join(ROOT, 'docs', 'install.md'), 'utf8');

/** Returns the shell commands of a section, without those that need a node. */
function commandsOf(section: string): string[] {
  const [, body = ''] = PAGE.split(`\n## ${section}\n`);
  const own = body.split('\n## ')[0] ?? '';
  return [...own.matchAll(/(<!-- Needs a node\. -->\n\n)?```sh\n([\s\S]*?)```/g)].flatMap(
    ([, skipped, commands = '']) => (skipped === undefined ? [commands] : []),
  );
}

/** Enough for a slow machine; a command that hangs is named. */
const COMMANDS_WITHIN_MS = 100_000;

/** Runs commands as a reader would, in a copy of the project folder. */
async function runShell(commands: string): Promise<string> {
  const path = [folder.path, process.env.PATH].join(delimiter);
  const env = { ...process.env, KUBECONFIG: cluster.kubeconfig, PATH: path, HELM_CACHE_HOME: folder.path };
  const options = { cwd: join(folder.path, 'project'), env, detached: true };
  const child = spawn('bash', ['-euxo', 'pipefail', '-c', commands], options);
  // The shell and what it started are one group.
  const late = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGTERM'), COMMANDS_WITHIN_MS);
  const ended = new Promise<number>(resolve => child.once('close', code => resolve(code ?? 1)));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  clearTimeout(late);
  // The trace on standard error ends with the command that failed, or hung.
  return outputOf({ stdout, stderr, code });
}

/** Sections of the page, and how many blocks of commands follow the first one. */
const SECTIONS = {
  Evaluate: 1,
  'Install with Helm': 7,
  'Install with one file': 2,
  'Install with kubectl': 2,
} as const;

/** What the commands use. `make` runs the generator. */
const PROJECT = [
  'Makefile',
  'bin',
  'charts',
  'config',
  'crds',
  'package-lock.json',
  'package.json',
  'src',
  'test/support',
  'tools/generate',
];

/** Starts a cluster, and provides helm, kubectl, and a copy of the project folder for the commands of the page. */
async function beginReading(options: Parameters<typeof startCluster>[0] = {}): Promise<void> {
  await begin(options);
  const binaries = await ensureBinaries(['helm', 'kubectl']);
  for (const name of ['helm', 'kubectl'] as const) await symlink(binaries[name], join(folder.path, name));
  for (const name of PROJECT) {
    await cp(join(ROOT, name), join(folder.path, 'project', name), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(folder.path, 'project', 'node_modules'));
}

describe.each(Object.entries(SECTIONS))('docs/install.md: %s', (section, following) => {
  beforeAll(() => beginReading());
  afterAll(end);

  test('its commands work, one after the other', async () => {
    const all = commandsOf(section);
    // The first block installs, or the second one, if the first one writes what it installs.
    const installing = all.findIndex(commands => /^(kubectl apply|helm install)/m.test(commands));
    const told: string[] = [];
    for (const commands of all.slice(0, installing + 1)) told.push(await runShell(commands));
    // What Helm prints after an installation.
    expect(told.join('').includes('is for evaluation only')).toBe(section === 'Evaluate');
    const others = all.slice(installing + 1);
    const accounts = await kubectl('get', 'serviceaccounts', '-n=sluice-system', '-o=name');
    expect(accounts).toContain('serviceaccount/sluice-controller');
    expect(await kubectl('get', 'deployments', '-n=sluice-system', '-o=name')).toContain(
      'deployment.apps/sluice-ingress',
    );
    if (section !== 'Evaluate') await isRefused('sluice-system:sluice-facade');
    for (const commands of others) await runShell(commands);
    expect(all).toHaveLength(following + 1);
  }, 300_000);
});

describe('docs/install.md: Two installations in one cluster', () => {
  // Deleted namespaces stay Terminating without it.
  beforeAll(() => beginReading({ controllerManager: true }));
  afterAll(end);

  const restOfFirst = () => kubectl('get', 'clusterroles,validatingadmissionpolicies,crds', '-o=name');

  test('a second release comes and goes beside the first', async () => {
    const [first = ''] = commandsOf('Install with Helm');
    const [install = '', create = '', remove = '', ...others] = commandsOf('Two installations in one cluster');
    expect(others).toEqual([]);
    await runShell(first);
    const before = await restOfFirst();
    expect(await runShell(install)).toContain('spec.instance: blue');
    for (const account of ['sluice-system:sluice-facade', 'blue-system:blue-sluice-facade']) await isRefused(account);
    expect(await runShell(create)).toMatch(/^workspace\.sluice\.dev\/initech +initech .* blue /m);
    await kubectl('create', 'namespace', 'initech');
    await kubectl('label', 'namespace', 'initech', 'sluice.dev/instance=blue', 'sluice.dev/workspace=initech');
    const other = { metadata: { name: 'acme' }, apiVersion: 'sluice.dev/v1alpha1', kind: 'Workspace' };
    const stdin = JSON.stringify({ ...other, spec: { account: 'acme' } });
    outputOf(await cluster.kubectl(['create', '-f', '-'], { stdin }));
    await runShell(remove);
    // Without a kubelet, the Job before it would not run.
    await runShell('helm uninstall blue --no-hooks --namespace blue-system');
    expect((await kubectl('get', 'workspaces,accounts', '-o=name')).trim()).toBe('workspace.sluice.dev/acme');
    expect(await restOfFirst()).toBe(before);
  }, 300_000);
});
