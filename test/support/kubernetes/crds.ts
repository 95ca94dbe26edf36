import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { ensureBinaries } from './binaries.ts';

const run = promisify(execFile);

interface Definition {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/** Custom resource definitions of every `.yaml` file in a folder; none when the folder is not there. */
async function readDefinitions(folder: string): Promise<Definition[]> {
  const names = await readdir(folder).catch((): string[] => []);
  const texts = await Promise.all(
    names
      .filter(name => name.endsWith('.yaml'))
      .toSorted()
      .map(name => readFile(join(folder, name), 'utf8')),
  );
  return texts
    .flatMap(text => parseAllDocuments(text).map(document => document.toJS() as Definition))
    .filter(object => object?.kind === 'CustomResourceDefinition');
}

/**
 * Applies a folder's custom resource definitions server-side and waits until the API server serves them. By kubectl:
 * client-node's models drop `x-kubernetes-validations`, `enum` and `default` on the way.
 *
 * @returns how many there were
 * @throws when one is refused, or not served within 30 s
 */
export async function applyDefinitions(kubeconfig: string, folder: string): Promise<number> {
  const definitions = await readDefinitions(folder);
  if (definitions.length === 0) return 0;
  const { kubectl } = await ensureBinaries(['kubectl']);
  // Discovery that kubectl caches of a cluster on a port that another one had before is wrong.
  const access = ['--kubeconfig', kubeconfig, '--cache-dir', join(dirname(kubeconfig), 'kubectl-cache')];
  const applying = run(kubectl, [...access, 'apply', '--server-side', '--force-conflicts', '-f', '-']);
  applying.child.stdin?.end(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: definitions }));
  await applying;
  const names = definitions.map(({ metadata }) => `crd/${metadata.name}`);
  await run(kubectl, [...access, 'wait', '--for=condition=Established', '--timeout=30s', ...names]);
  return definitions.length;
}
