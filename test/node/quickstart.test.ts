import { execFileSync } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildImage, buildRedisImage } from '../../tools/image/build.ts';
import { ROOT } from '../chart/support/helm.ts';
import { ensureBinaries } from '../support/kubernetes/binaries.ts';
import { type Node, startNode } from '../support/node-cluster/node.ts';
import { nodeRefusal } from '../support/node-cluster/requirements.ts';
import { registryRefusal } from '../support/registry/registry.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';
import type { Example } from '../support/tour/readme.ts';
import { type Provider, QuickstartShell, quickstartSteps } from './quickstart.ts';

/** The project files used by the page. */
const PROJECT = [
  '.npmrc',
  'LICENSE',
  'Makefile',
  'bin',
  'charts',
  'config',
  'package-lock.json',
  'package.json',
  'src',
  'test/support/node',
  'tools/image',
];

/** All steps, from building the images to the delivery. */
const WITHIN_MS = 600_000;

/** Returns the reason why the page can't be run with a provider, or undefined. */
function refusalOf(provider: Provider): string | undefined {
  const checks = [
    ['docker', 'info'],
    [provider, 'version'],
    ['skopeo', '--version'],
  ] as const;
  for (const [program, argument] of checks) {
    try {
      execFileSync(program, [argument], { stdio: 'ignore' });
    } catch {
      return `\`${program} ${argument}\` fails`;
    }
  }
  return undefined;
}

const REFUSALS = {
  k3d: refusalOf('k3d'),
  kind: refusalOf('kind'),
  'a node': nodeRefusal() ?? (await registryRefusal()),
};
for (const [place, refusal] of Object.entries(REFUSALS)) {
  if (refusal !== undefined)
    process.stderr.write(`\nSKIPPED: docs/quickstart.md with ${place}, because ${refusal}\n\n`);
}

let folder: TemporaryFolder;

beforeAll(async () => {
  folder = await temporaryFolder('quickstart');
  for (const name of PROJECT) await cp(join(ROOT, name), join(folder.path, name), { recursive: true });
});
afterAll(() => folder?.remove());

async function openShell(kubeconfig: string): Promise<QuickstartShell> {
  const { helm, kubectl } = await ensureBinaries(['helm', 'kubectl']);
  const homes = { HELM_CACHE_HOME: folder.path, HELM_CONFIG_HOME: folder.path, HELM_DATA_HOME: folder.path };
  const path = [dirname(helm), dirname(kubectl), process.env.PATH].join(delimiter);
  const env = { ...process.env, ...homes, PATH: path, KUBECONFIG: kubeconfig };
  return new QuickstartShell({ cwd: folder.path, env, state: join(folder.path, 'variables') });
}

test('the page has the same steps for each provider, except for creating the cluster', () => {
  const common = quickstartSteps();
  expect(common.length).toBeGreaterThan(4);
  for (const provider of ['k3d', 'kind'] as const) {
    const own = quickstartSteps(provider).filter(({ commands }) => commands.startsWith(provider));
    expect(own).toHaveLength(2);
    expect(quickstartSteps(provider)).toHaveLength(common.length + own.length);
  }
});

test.skipIf(REFUSALS.k3d !== undefined)('all commands work with k3d', { timeout: WITHIN_MS }, async () => {
  const shell = await openShell(join(folder.path, 'k3d'));
  for (const step of quickstartSteps('k3d')) await shell.run(step);
});

test.skipIf(REFUSALS.kind !== undefined)('all commands work with kind', { timeout: WITHIN_MS }, async () => {
  const shell = await openShell(join(folder.path, 'kind'));
  for (const step of quickstartSteps('kind')) await shell.run(step);
});

describe.skipIf(REFUSALS['a node'] !== undefined)('without Docker', () => {
  let node: Node;

  beforeAll(async () => {
    // The kubelet must not have the images from a registry, because it would also find them by their other name.
    node = await startNode();
    await buildImage(ROOT, join(folder.path, 'dist', 'image'));
    await buildRedisImage(ROOT, join(folder.path, 'dist', 'redis-image'));
  });
  afterAll(() => node?.stop());

  test('all other commands work on a node', { timeout: WITHIN_MS }, async () => {
    const shell = await openShell(node.kubeconfig);
    const [images, ...steps] = quickstartSteps() as [Example, ...Example[]];
    // `make image` has already been run in beforeAll.
    await shell.run({ ...images, commands: images.commands.replace(/^make image$/m, '') });
    for (const name of ['sluice', 'sluice-redis']) await node.importImage(join(folder.path, 'dist', `${name}.tar`));
    const beganMs = performance.now();
    for (const step of steps) await shell.run(step);
    console.log(`delivered ${((performance.now() - beganMs) / 1_000).toFixed(1)} s after the start of helm install`);
  });
});
