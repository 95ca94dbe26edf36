import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type BuildOrder, buildBinaries } from './build.ts';

const run = promisify(execFile);

/**
 * The tool families. Each family has a separate go.mod next to this file because they use different k8s.io versions.
 */
const FAMILIES = {
  kube: { folder: join(import.meta.dirname, 'kube'), module: 'k8s.io/kubernetes' },
  etcd: { folder: join(import.meta.dirname, 'etcd'), module: 'go.etcd.io/etcd/server/v3' },
  coredns: { folder: join(import.meta.dirname, 'coredns'), module: 'github.com/coredns/coredns' },
  'kube-state-metrics': {
    folder: join(import.meta.dirname, 'kube-state-metrics'),
    module: 'k8s.io/kube-state-metrics/v2',
  },
  helm: { folder: join(import.meta.dirname, 'helm'), module: 'helm.sh/helm/v3' },
  helm4: { folder: join(import.meta.dirname, 'helm4'), module: 'helm.sh/helm/v4' },
  argocd: { folder: join(import.meta.dirname, 'argocd'), module: 'github.com/argoproj/argo-cd/v3' },
} as const;

type Family = keyof typeof FAMILIES;

const BINARIES = {
  etcd: { family: 'etcd', package: 'go.etcd.io/etcd/server/v3' },
  'kube-apiserver': { family: 'kube', package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  kubectl: { family: 'kube', package: 'k8s.io/kubernetes/cmd/kubectl' },
  'kube-controller-manager': { family: 'kube', package: 'k8s.io/kubernetes/cmd/kube-controller-manager' },
  helm: { family: 'helm', package: 'helm.sh/helm/v3/cmd/helm' },
  'kube-state-metrics': { family: 'kube-state-metrics', package: 'k8s.io/kube-state-metrics/v2' },
  'kube-scheduler': { family: 'kube', package: 'k8s.io/kubernetes/cmd/kube-scheduler' },
  kubelet: { family: 'kube', package: 'k8s.io/kubernetes/cmd/kubelet' },
  'kube-proxy': { family: 'kube', package: 'k8s.io/kubernetes/cmd/kube-proxy' },
  // A main package in the same folder as the go.mod: CoreDNS with a small set of plugins.
  coredns: { family: 'coredns', package: '.' },
  helm4: { family: 'helm4', package: 'helm.sh/helm/v4/cmd/helm' },
  // A single binary for all of Argo CD, which selects its role using the name with which it is started.
  argocd: { family: 'argocd', package: 'github.com/argoproj/argo-cd/v3/cmd' },
  // Programs in the same folder as the go.mod that evaluate many objects in one process.
  'argocd-health': { family: 'argocd', package: './health' },
  kstatus: { family: 'helm4', package: './kstatus' },
} as const;

export type Binary = keyof typeof BINARIES;

/** The binaries that every cluster requires. All others are only required by some tests. */
export const CLUSTER_BINARIES = ['etcd', 'kube-apiserver', 'kubectl'] as const satisfies readonly Binary[];

/**
 * Thrown if there are no binaries, and Go is not available to build them. The message lists all ways to get a cluster.
 */
export class MissingBinaries extends Error {
  override readonly name = 'MissingBinaries';
}

/** Reads the version of a family, such as `v1.36.3`, from its go.mod, which is the only file that contains it. */
function versionOf(family: Family, module: string = FAMILIES[family].module): string {
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

/** The symbols of a family that the linker sets to values. */
const SYMBOLS: Partial<Record<Family, (version: string) => Record<string, string>>> = {
  kube: kubeSymbols,
  helm: helmSymbols,
  helm4: version => ({ 'helm.sh/helm/v4/internal/version.version': version }),
  argocd: version => ({ 'github.com/argoproj/argo-cd/v3/common.version': version.slice(1) }),
};

/**
 * Sets the version in the linker. Without it, Kubernetes reports `v0.0.0`, which clients compare with their version,
 * and Helm 3 renders for Kubernetes 1.20 instead of its client version.
 */
function linkerFlags(family: Family, version: string): string {
  const symbols = SYMBOLS[family]?.(version) ?? {};
  return ['-s -w', ...Object.entries(symbols).map(([name, value]) => `-X ${name}=${value}`)].join(' ');
}

function kubeSymbols(version: string): Record<string, string> {
  const [major = '', minor = ''] = version.slice(1).split('.');
  const at = 'k8s.io/component-base/version';
  return { [`${at}.gitVersion`]: version, [`${at}.gitMajor`]: major, [`${at}.gitMinor`]: minor };
}

function helmSymbols(): Record<string, string> {
  // Version 0.37 of the client belongs to Kubernetes 1.37.
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
  const { folder } = FAMILIES[family];
  return {
    name: binary,
    goPackage,
    module: folder,
    linkerFlags: linkerFlags(family, version),
    target: join(cacheFolder(), family, version, ...hashOf(join(folder, goPackage)), binary),
  };
}

/**
 * Returns a folder for binaries built from a main.go next to the go.mod, which may change without changing the version.
 */
function hashOf(goPackage: string): string[] {
  const main = join(goPackage, 'main.go');
  return existsSync(main) ? [createHash('sha256').update(readFileSync(main)).digest('hex').slice(0, 8)] : [];
}

/**
 * Returns the source folder of a family in the Go module cache, for files required by its binary. This folder is
 * read-only.
 * @throws if Go is missing or cannot download the module
 */
export async function moduleFolder(family: Family): Promise<string> {
  const { folder, module } = FAMILIES[family];
  const env = { ...process.env, GOTOOLCHAIN: 'local' };
  // Unlike `list`, `download` downloads missing modules.
  const { stdout } = await run('go', ['mod', 'download', '-json', module], { cwd: folder, env });
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}

/** Returns whether a binary exists already. */
export function isBinaryThere(binary: Binary): boolean {
  return isExecutable(pathOf(binary));
}

/**
 * Returns the paths of the binaries. Uses the binaries in `KUBEBUILDER_ASSETS` (the convention of envtest) or in the
 * cache. Otherwise, builds them into the cache from the modules locked in go.sum. Only the wanted binaries are
 * guaranteed to exist.
 * @throws MissingBinaries if a wanted binary is missing and Go is missing or too old
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
