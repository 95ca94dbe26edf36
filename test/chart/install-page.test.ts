import { spawn } from 'node:child_process';
import { mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readRootKeys } from '../../src/config/root-key-file.ts';
import { copyFiles } from '../support/copy-files.ts';
import { ensureBinaries } from '../support/kubernetes/binaries.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';
import { outputOf, ROOT } from './support/helm.ts';
import { openTarget, type Target } from './support/target.ts';

let target: Target;
/** Contains helm, kubectl, and a copy of the project folder. */
let desk: TemporaryFolder;

const PAGE = await readFile(join(ROOT, 'docs', 'install.md'), 'utf8');
const OPERATIONS = await readFile(join(ROOT, 'docs', 'operations.md'), 'utf8');

/** Returns the shell commands of a section and its subsections, except for commands that require a node. */
function commandsOf(section: string, page = PAGE): string[] {
  const [, body = ''] = page.split(`\n## ${section}\n`);
  const [own = ''] = body.split(/\n## /);
  return [...own.matchAll(/(<!-- Needs a node\. -->\n\n)?```sh\n([\s\S]*?)```/g)].flatMap(
    ([, skipped, commands = '']) => (skipped === undefined ? [commands] : []),
  );
}

/** Enough time for a slow machine. If a command does not end, the error names it. */
const COMMANDS_WITHIN_MS = 100_000;

/** Runs commands like a reader would, in a copy of the project folder. */
async function runShell(commands: string): Promise<string> {
  const path = [desk.path, process.env.PATH].join(delimiter);
  const env = {
    ...process.env,
    KUBECONFIG: target.cluster.kubeconfig,
    PATH: path,
    HELM_CACHE_HOME: target.folder.path,
  };
  const options = { cwd: join(desk.path, 'project'), env, detached: true };
  const child = spawn('bash', ['-euxo', 'pipefail', '-c', commands], options);
  // The shell and its child processes belong to the same process group.
  const late = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGTERM'), COMMANDS_WITHIN_MS);
  const ended = new Promise<number>(resolve => child.once('close', code => resolve(code ?? 1)));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  clearTimeout(late);
  // The trace on standard error ends with the command that failed or did not end.
  return outputOf({ stdout, stderr, code });
}

/** The sections of the page, and the number of command blocks following the first one. */
const SECTIONS = {
  Evaluate: 1,
  'Install with Helm': 6,
  'Install with one file': 2,
  'Install with kubectl': 2,
} as const;

/** The files used by the commands. `make` runs the generator. */
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

beforeAll(async () => {
  desk = await temporaryFolder('install-page');
  const binaries = await ensureBinaries(['helm', 'kubectl']);
  for (const name of ['helm', 'kubectl'] as const) await symlink(binaries[name], join(desk.path, name));
  await copyFiles(ROOT, PROJECT, join(desk.path, 'project'));
  await symlink(join(ROOT, 'node_modules'), join(desk.path, 'project', 'node_modules'));
});
afterAll(() => desk?.remove());

/** Provides an empty cluster for the commands of a section. */
async function beginReading(options: Parameters<typeof openTarget>[0] = {}): Promise<void> {
  target = await openTarget(options);
}

describe.each(Object.entries(SECTIONS))('docs/install.md: %s', (section, following) => {
  beforeAll(() => beginReading());
  afterAll(() => target?.stop());

  test('all commands work if they are run in order', async () => {
    const all = commandsOf(section);
    // The first block installs Sluice, unless it writes the required files. In that case, the second block installs
    // Sluice.
    const installing = all.findIndex(commands => /^(kubectl apply|helm install)/m.test(commands));
    const outputs: string[] = [];
    for (const commands of all.slice(0, installing + 1)) outputs.push(await runShell(commands));
    // The output of Helm after an installation.
    expect(outputs.join('').includes('only be used for evaluation')).toBe(section === 'Evaluate');
    const others = all.slice(installing + 1);
    const accounts = await target.kubectl('get', 'serviceaccounts', '-n=sluice-system', '-o=name');
    expect(accounts).toContain('serviceaccount/sluice-controller');
    expect(await target.kubectl('get', 'deployments', '-n=sluice-system', '-o=name')).toContain(
      'deployment.apps/sluice-ingress',
    );
    if (section !== 'Evaluate') await target.isRefused('sluice-system:sluice-facade');
    const later: string[] = [];
    for (const commands of others) later.push(await runShell(commands));
    expect(later.join('').includes('has been upgraded')).toBe(section === 'Install with Helm');
    expect(later.join('')).not.toContain('Create the first');
    expect(all).toHaveLength(following + 1);
  }, 300_000);
});

describe('docs/operations.md: Rotate the root key', () => {
  beforeAll(() => beginReading());
  afterAll(() => target?.stop());

  interface Keys {
    readonly data: Readonly<Record<string, string>>;
  }
  const secret = async () =>
    JSON.parse(await target.kubectl('get', 'secret', 'sluice-root-key', '-n=sluice-system', '-o=json')) as Keys;

  /** Returns the keys that a pod reads from its mounted Secret. */
  async function keysInPod(): Promise<readonly string[]> {
    const { data } = await secret();
    const folder = await mkdtemp(join(target.folder.path, 'mounted-'));
    for (const [name, value] of Object.entries(data)) await writeFile(join(folder, name), Buffer.from(value, 'base64'));
    const problems: string[] = [];
    const keys = readRootKeys(join(folder, 'root.key'), problems);
    expect(problems).toEqual([]);
    return (keys ?? []).map(({ name, isRetired }) => (isRetired ? `${name} retired` : name));
  }

  test('all commands work: they add a key, back it up, retire the oldest key, and remove another key', async () => {
    const [install = ''] = commandsOf('Install with Helm');
    const [add = '', backUp = '', retire = '', remove = '', ...others] = commandsOf('Rotate the root key', OPERATIONS);
    expect(others).toEqual([]);
    await runShell(install);
    const { data: before } = await secret();
    await runShell(add);
    expect(await keysInPod()).toEqual(['root.key', 'root.key.2']);
    await runShell(backUp);
    const { data } = await secret();
    const backup = await readFile(join(desk.path, 'project', 'root.key.2'));
    expect(backup.toString('base64')).toBe(data['root.key.2']);
    await runShell(retire);
    expect(await keysInPod()).toEqual(['root.key retired', 'root.key.2']);
    // The next rotation.
    await runShell(add.replace('root.key.2', 'root.key.3'));
    await runShell(remove);
    expect(await keysInPod()).toEqual(['root.key retired', 'root.key.3']);
    const [upgrade = ''] = commandsOf('Upgrade', OPERATIONS);
    await runShell(upgrade);
    expect(await keysInPod()).toEqual(['root.key retired', 'root.key.3']);
    expect((await secret()).data['root.key']).toBe(before['root.key']);
  }, 300_000);
});

describe('docs/install.md: Two installations in one cluster', () => {
  // Deleted namespaces stay Terminating without the controller manager.
  beforeAll(() => beginReading({ controllerManager: true }));
  afterAll(() => target?.stop());

  const restOfFirst = () => target.kubectl('get', 'clusterroles,validatingadmissionpolicies,crds', '-o=name');

  test('a second release can be installed and removed without changing the first release', async () => {
    const [first = ''] = commandsOf('Install with Helm');
    const [install = '', create = '', remove = '', list = '', ...others] = commandsOf(
      'Two installations in one cluster',
    );
    expect(others).toEqual([]);
    await runShell(first);
    const before = await restOfFirst();
    expect(await runShell(install)).toContain('spec.instance: blue');
    for (const account of ['sluice-system:sluice-facade', 'blue-system:blue-sluice-facade'])
      await target.isRefused(account);
    expect(await runShell(create)).toMatch(/^workspace\.sluice\.dev\/initech +initech .* blue /m);
    await target.kubectl('create', 'namespace', 'initech');
    await target.kubectl('label', 'namespace', 'initech', 'sluice.dev/instance=blue', 'sluice.dev/workspace=initech');
    const other = { metadata: { name: 'acme' }, apiVersion: 'sluice.dev/v1alpha1', kind: 'Workspace' };
    const stdin = JSON.stringify({ ...other, spec: { account: 'acme' } });
    outputOf(await target.cluster.kubectl(['create', '-f', '-'], { stdin }));
    await runShell(list);
    await runShell(remove);
    // Without a kubelet, the Job in the previous command would not run.
    await runShell('helm uninstall blue --no-hooks --namespace blue-system');
    expect((await target.kubectl('get', 'workspaces,accounts', '-o=name')).trim()).toBe('workspace.sluice.dev/acme');
    expect(await restOfFirst()).toBe(before);
  }, 300_000);
});
