import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { ensureBinaries } from './binaries.ts';

const run = promisify(execFile);

interface Definition {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/** Returns the CustomResourceDefinitions in all `.yaml` files of a folder, or none if the folder does not exist. */
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
 * Applies the CustomResourceDefinitions in a folder using server-side apply, and waits until the API server serves
 * them. Uses kubectl because the models in client-node drop `x-kubernetes-validations`, `enum`, and `default`.
 * @returns their number
 * @throws if a definition is refused, or not served within 30 s
 */
export async function applyDefinitions(kubeconfig: string, folder: string): Promise<number> {
  const definitions = await readDefinitions(folder);
  if (definitions.length === 0) return 0;
  const { kubectl } = await ensureBinaries(['kubectl']);
  // kubectl caches discovery by port. If another cluster has used the port before, the cache would be wrong. Later
  // commands cannot use this discovery because the definitions are not served yet.
  const access = ['--kubeconfig', kubeconfig, '--cache-dir', join(dirname(kubeconfig), 'kubectl-cache-before-crds')];
  const applying = run(kubectl, [...access, 'apply', '--server-side', '--force-conflicts', '-f', '-']);
  applying.child.stdin?.end(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: definitions }));
  await applying;
  const names = definitions.map(({ metadata }) => `crd/${metadata.name}`);
  await untilEstablished(() => run(kubectl, [...access, ...ESTABLISHED, ...names]));
  return definitions.length;
}

/** The arguments of the command that waits until the API server serves definitions, followed by their names. */
export const ESTABLISHED = ['wait', '--for=condition=Established', '--timeout=30s'];

/**
 * Runs a `kubectl wait` for definitions. Repeats it while a new definition has no status yet, because kubectl then
 * fails instead of waiting.
 */
export async function untilEstablished<T>(wait: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await wait();
    } catch (error) {
      if (attempt === 20 || !String(error).includes('.status.conditions accessor error')) throw error;
      await setTimeout(100);
    }
  }
}
