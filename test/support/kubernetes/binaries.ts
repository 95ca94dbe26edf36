import { accessSync, constants, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type BuildOrder, buildBinaries } from './build.ts';

/** The families of tools. Each has a separate go.mod beside this file, because they pin different k8s.io versions. */
const FAMILIES = {
  kube: { folder: join(import.meta.dirname, 'kube'), module: 'k8s.io/kubernetes' },
  etcd: { folder: join(import.meta.dirname, 'etcd'), module: 'go.etcd.io/etcd/server/v3' },
  coredns: { folder: join(import.meta.dirname, 'coredns'), module: 'github.com/coredns/coredns' },
  helm: { folder: join(import.meta.dirname, 'helm'), module: 'helm.sh/helm/v3' },
} as const;

const BINARIES = {
  etcd: { family: 'etcd', package: 'go.etcd.io/etcd/server/v3' },
  'kube-apiserver': { family: 'kube', package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  kubectl: { family: 'kube', package: 'k8s.io/kubernetes/cmd/kubectl' },
  'kube-controller-manager': { family: 'kube', package: 'k8s.io/kubernetes/cmd/kube-controller-manager' },
  helm: { family: 'helm', package: 'helm.sh/helm/v3/cmd/helm' },
  'kube-scheduler': { family: 'kube', package: 'k8s.io/kubernetes/cmd/kube-scheduler' },
  kubelet: { family: 'kube', package: 'k8s.io/kubernetes/cmd/kubelet' },
  'kube-proxy': { family: 'kube', package: 'k8s.io/kubernetes/cmd/kube-proxy' },
  // A main package beside the go.mod: CoreDNS with few of its plugins.
  coredns: { family: 'coredns', package: '.' },
} as const;

export type Binary = keyof typeof BINARIES;

/** Binaries that every cluster needs; only some tests need the others. */
export const CLUSTER_BINARIES = ['etcd', 'kube-apiserver', 'kubectl'] as const satisfies readonly Binary[];

/** There are no binaries, and no Go to build them. The message lists all ways to get a cluster. */
export class MissingBinaries extends Error {
  override readonly name = 'MissingBinaries';
}

/** Reads the version of a family, such as `v1.36.3`, from its go.mod, the only place that has it. */
function versionOf(family: keyof typeof FAMILIES, module: string = FAMILIES[family].module): string {
  const { folder } = FAMILIES[family];
  const words = readFileSync(join(folder, 'go.mod'), 'utf8')
    .split('\n')
    .map(line =>
      line
        .replace(/^require/, '')
        .trim()
        .split(/\s+/),
    );
  const version = words.find(([name, found]) => name === module && found?.startsWith('v'))?.[1];
  if (version === undefined) throw new Error(`${folder}/go.mod does not require ${module}`);
  return version;
}

/**
 * Sets the version in the linker: Kubernetes is `v0.0.0` otherwise, and clients compare versions. Helm would render for
 * Kubernetes 1.20 instead of the version of its client.
 */
function linkerFlags(family: keyof typeof FAMILIES, version: string): string {
  const symbols = family === 'kube' ? kubeSymbols(version) : family === 'helm' ? helmSymbols() : {};
  return ['-s -w', ...Object.entries(symbols).map(([name, value]) => `-X ${name}=${value}`)].join(' ');
}

function kubeSymbols(version: string): Record<string, string> {
  const [major = '', minor = ''] = version.slice(1).split('.');
  const at = 'k8s.io/component-base/version';
  return { [`${at}.gitVersion`]: version, [`${at}.gitMajor`]: major, [`${at}.gitMinor`]: minor };
}

function helmSymbols(): Record<string, string> {
  // Version 0.37 of the client is that of Kubernetes 1.37.
  const [, minor = ''] = versionOf('helm', 'k8s.io/client-go').split('.');
  const at = 'helm.sh/helm/v3/pkg/chartutil';
  return { [`${at}.k8sVersionMajor`]: '1', [`${at}.k8sVersionMinor`]: minor };
}

function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sluice');
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function pathOf(binary: Binary): string {
  const folder = process.env.KUBEBUILDER_ASSETS;
  const asset = folder ? join(folder, binary) : undefined;
  return asset !== undefined && isExecutable(asset) ? asset : orderFor(binary).target;
}

function orderFor(binary: Binary): BuildOrder {
  const { family, package: goPackage } = BINARIES[binary];
  const version = versionOf(family);
  return {
    name: binary,
    goPackage,
    module: FAMILIES[family].folder,
    linkerFlags: linkerFlags(family, version),
    target: join(cacheFolder(), family, version, binary),
  };
}

/** Returns whether a binary exists already. */
export function isBinaryThere(binary: Binary): boolean {
  return isExecutable(pathOf(binary));
}

/**
 * Returns the paths of the binaries: those in `KUBEBUILDER_ASSETS` (the convention of envtest), else those in the
 * cache, else builds into the cache from the modules that go.sum locks. Only the wanted ones certainly exist.
 *
 * @throws MissingBinaries if a wanted one is missing and Go is absent or too old
 */
export async function ensureBinaries(wanted: readonly Binary[]): Promise<Readonly<Record<Binary, string>>> {
  const names = Object.keys(BINARIES) as Binary[];
  const paths = Object.fromEntries(names.map(name => [name, pathOf(name)])) as Record<Binary, string>;
  const missing = wanted.filter(binary => !isExecutable(paths[binary])).map(orderFor);
  if (missing.length > 0) {
    const refusal = await buildBinaries(missing, { lock: join(cacheFolder(), 'build.lock'), isThere: isExecutable });
    if (refusal !== undefined) throw new MissingBinaries(explain(missing, refusal));
  }
  return paths;
}

function explain(missing: readonly BuildOrder[], refusal: string): string {
  return [
    `No Kubernetes for the tests: ${missing.map(({ name }) => name).join(', ')} not found, and ${refusal}.`,
    'Any one of these helps:',
    '  - install Go 1.26 or newer: the binaries are then built once (about 5 minutes, 3 GB of build cache);',
    '  - set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl (setup-envtest use -p path);',
    '  - set TEST_KUBECONFIG to the kubeconfig of a cluster that may be written to;',
    '  - start a Docker daemon: K3s is then run in a container.',
  ].join('\n');
}
