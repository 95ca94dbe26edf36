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
async function begin(): Promise<void> {
  [cluster, helm, folder] = await Promise.all([startCluster(), openHelm(), temporaryFolder('install')]);
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
  beforeAll(begin);
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

  test('an upgrade keeps the root key', async () => {
    await run(['upgrade', 'blue', CHART], { ...values, router: { replicas: 5 } });
    expect(await rootKey()).toMatchObject({ metadata: { uid: first.metadata.uid }, data: first.data });
    expect(await kubectl('get', 'deployment', 'blue-sluice-router', '-n=events', '-o=jsonpath={.spec.replicas}')).toBe(
      '5',
    );
  });

  test('what is uninstalled leaves the kinds and the root key', async () => {
    outputOf(await cluster.kubectl(['get', 'deployments', '-n=events']));
    const { code } = await helm(['uninstall', 'blue', '--namespace=events'], { kubeconfig: cluster.kubeconfig });
    expect(code).toBe(0);
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

describe.each(['Evaluate', 'Install with Helm', 'Install with kubectl'])('docs/install.md: %s', section => {
  beforeAll(async () => {
    await begin();
    const binaries = await ensureBinaries(['helm', 'kubectl']);
    for (const name of ['helm', 'kubectl'] as const) await symlink(binaries[name], join(folder.path, name));
    for (const name of ['charts', 'config', 'crds']) {
      await cp(join(ROOT, name), join(folder.path, 'project', name), { recursive: true });
    }
  });
  afterAll(end);

  test('its commands work, one after the other', async () => {
    const [install = '', ...others] = commandsOf(section);
    const told = await runShell(install);
    // What Helm prints after an installation.
    expect(told.includes('is for evaluation only')).toBe(section === 'Evaluate');
    const accounts = await kubectl('get', 'serviceaccounts', '-n=sluice-system', '-o=name');
    expect(accounts).toContain('serviceaccount/sluice-controller');
    expect(await kubectl('get', 'deployments', '-n=sluice-system', '-o=name')).toContain(
      'deployment.apps/sluice-ingress',
    );
    if (section !== 'Evaluate') await isRefused('sluice-system:sluice-facade');
    for (const commands of others) await runShell(commands);
    expect(others.length).toBe({ Evaluate: 0, 'Install with Helm': 4, 'Install with kubectl': 2 }[section]);
  }, 300_000);
});
