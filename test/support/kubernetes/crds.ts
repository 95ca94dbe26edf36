import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ensureBinaries } from './binaries.ts';

const run = promisify(execFile);

/**
 * Applies a folder's custom resource definitions server-side and waits until the API server serves them. By kubectl:
 * client-node's models drop `x-kubernetes-validations`, `enum` and `default` on the way.
 *
 * @returns how many there were
 * @throws when one is refused, or not served within 30 s
 */
export async function applyDefinitions(kubeconfig: string, folder: string): Promise<number> {
  if (!existsSync(folder)) return 0;
  const names = (await readdir(folder)).filter(name => name.endsWith('.yaml'));
  if (names.length === 0) return 0;
  const { kubectl } = await ensureBinaries(['kubectl']);
  // Discovery that kubectl caches of a cluster on a port that another one had before is wrong.
  const access = ['--kubeconfig', kubeconfig, '--cache-dir', join(dirname(kubeconfig), 'kubectl-cache')];
  await run(kubectl, [...access, 'apply', '--server-side', '--force-conflicts', '-f', folder]);
  await run(kubectl, [...access, 'wait', '--for=condition=Established', '--timeout=30s', '-f', folder]);
  return names.length;
}
