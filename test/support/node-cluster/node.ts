import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type ChildProcess, waitUntilReady } from '../child-process.ts';
import { type Binary, ensureBinaries } from '../kubernetes/binaries.ts';
import {
  ADMIN,
  type Credential,
  formatKubeconfig,
  formatTokenFile,
  issueToken,
  writeServiceAccountKeys,
} from '../kubernetes/credentials.ts';
import { type Kubectl, kubectlFor } from '../kubernetes/kubectl.ts';
import { httpsStatus } from '../kubernetes/readiness.ts';
import {
  API_PORT,
  apiServerArguments,
  controllerManagerArguments,
  DNS_READY_PORT,
  etcdArguments,
  kubeletArguments,
  NODE_NAME,
  type NodeFiles,
  nodeFiles,
  proxyArguments,
  schedulerArguments,
} from './components.ts';
import { buildStaticImage, type ImportedImage, importImage } from './images.ts';
import { type Machine, startMachine } from './machine.ts';
import type { Network } from './network.ts';
import { nodeRefusal, pluginFolder } from './requirements.ts';
import { PAUSE_IMAGE, writeSettings } from './settings.ts';
import { createVolumeFolders, VOLUMES } from './volumes.ts';

const run = promisify(execFile);

const START_DEADLINE_MS = 60_000;

/**
 * The users of the components, each of which has the permissions of its bootstrap role, in addition to the
 * administrator.
 */
const COMPONENTS = [
  { component: 'kube-controller-manager', name: 'system:kube-controller-manager', groups: [] },
  { component: 'kube-scheduler', name: 'system:kube-scheduler', groups: [] },
  { component: 'kube-proxy', name: 'system:kube-proxy', groups: [] },
  { component: 'kubelet', name: `system:node:${NODE_NAME}`, groups: ['system:nodes'] },
] as const;

export const NODE_BINARIES = [
  'etcd',
  'kube-apiserver',
  'kubectl',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'coredns',
] as const satisfies readonly Binary[];

export type Node = {
  /** The path of the administrator's kubeconfig. The API server can be reached from the host and from Pods. */
  readonly kubeconfig: string;
  /** The folder of the logs and the data. */
  readonly folder: string;
  /** The host has a route to Pods, Services, and NodePorts. Pods can reach the host at `network.host`. */
  readonly network: Network;
  readonly kubectl: Kubectl;
  /** The path of the containerd socket, for `ctr --namespace k8s.io`. */
  readonly containerdSocket: string;
  /**
   * Imports a docker-archive, an OCI archive, or the folder of an OCI layout. Pods require `imagePullPolicy: Never` or
   * `IfNotPresent`.
   * @param name for an OCI image whose index only contains a tag, such as `localhost/sluice`
   */
  readonly importImage: (path: string, name?: string) => Promise<ImportedImage[]>;
  /**
   * Allows containerd to pull from a registry.
   * @param host such as `10.200.0.1:5000`
   * @param ca path of its certificate authority. By default, plain HTTP is used
   */
  readonly trustRegistry: (host: string, ca?: string) => Promise<void>;
  /** Kills the API server. Pods continue to run. */
  readonly killApiServer: () => Promise<void>;
  /** Restarts the API server and resolves when it is ready. */
  readonly restartApiServer: () => Promise<void>;
  /** Stops all processes and Pods immediately and removes all files. Can be called twice. */
  readonly stop: () => Promise<void>;
};

/**
 * Starts a Kubernetes node with its control plane. It ends with this process, for any reason.
 * @throws if this machine cannot run a node, or with the end of the log if a component is not ready within 60 s
 */
export async function startNode(): Promise<Node> {
  const refusal = nodeRefusal();
  if (refusal !== undefined) throw new Error(refusal);
  const binaries = await ensureBinaries(NODE_BINARIES);
  const machine = await startMachine();
  try {
    return await startComponents(machine, binaries);
  } catch (error) {
    await machine.stop();
    throw error;
  }
}

async function startComponents(machine: Machine, binaries: Readonly<Record<Binary, string>>): Promise<Node> {
  const { folder, network } = machine;
  const files = nodeFiles(folder);
  const url = `https://${network.node}:${API_PORT}`;
  const start = (component: Binary, args: readonly string[]) => machine.start(component, binaries[component], args);
  const kubectl = kubectlFor({ binary: binaries.kubectl, kubeconfig: files.kubeconfig, cache: files.kubectlCache });

  const admin = issueToken(ADMIN);
  const credentials = COMPONENTS.map(({ component, ...user }) => ({ component, ...issueToken(user) }));
  await writeCredentials(files, [admin, ...credentials]);
  await writeSettings({ files, network, cgroup: machine.name, plugins: pluginFolder() ?? '' });

  let apiServer: ChildProcess;
  const startApiServer = async (): Promise<void> => {
    apiServer = start('kube-apiserver', apiServerArguments(files, network));
    await ready(apiServer, 'kube-apiserver', async () => (await httpsStatus(`${url}/readyz`, admin.token)) === 200);
  };
  const startApi = async (): Promise<void> => {
    start('etcd', etcdArguments(files));
    await startApiServer();
    const cluster = { server: url, 'certificate-authority-data': await readFile(files.authority, 'base64') };
    const write = (path: string, { token }: Credential) =>
      writeFile(path, formatKubeconfig({ cluster, user: { token } }), { mode: 0o600 });
    await write(files.kubeconfig, admin);
    for (const credential of credentials) await write(files.kubeconfigOf(credential.component), credential);
  };
  await Promise.all([startApi(), startContainerd(machine, files)]);

  const manager = start('kube-controller-manager', controllerManagerArguments(files));
  start('kube-scheduler', schedulerArguments(files));
  start('kube-proxy', proxyArguments(files, network));
  const dns = start('coredns', [`-conf=${files.corefile}`]);
  const kubelet = start('kubelet', kubeletArguments(files, network));
  await createVolumes(folder, kubectl);
  await ready(kubelet, 'kubelet', () => isNodeReady(kubectl));
  await ready(manager, 'kube-controller-manager', () => canAdmitPods(kubectl));
  await ready(dns, 'coredns', () => isOk(`http://${network.node}:${DNS_READY_PORT}/ready`));

  return {
    kubeconfig: files.kubeconfig,
    folder,
    network,
    kubectl,
    containerdSocket: files.containerdSocket,
    importImage: (path, name) => importImage(files.containerdSocket, path, name),
    trustRegistry: (host, ca) => trustRegistry(files, host, ca),
    killApiServer: () => killInside(apiServer),
    restartApiServer: startApiServer,
    stop: machine.stop,
  };
}

/** Kills a program of the node. Its parent is `nsenter`, which does not forward signals. */
async function killInside({ pid, exited }: ChildProcess): Promise<void> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  for (const child of children.trim().split(/\s+/)) process.kill(Number(child), 'SIGKILL');
  await exited;
}

function ready(child: ChildProcess, name: string, probe: () => Promise<boolean>): Promise<void> {
  return waitUntilReady(child, probe, { name, deadlineMs: START_DEADLINE_MS, everyMs: 200 });
}

async function isNodeReady(kubectl: Kubectl): Promise<boolean> {
  const path = '{.status.conditions[?(@.type=="Ready")].status}';
  return (await kubectl(['get', 'node', NODE_NAME, '-o', `jsonpath=${path}`])).stdout === 'True';
}

async function createVolumes(folder: string, kubectl: Kubectl): Promise<void> {
  await createVolumeFolders(join(folder, 'root'));
  const { stderr, code } = await kubectl(['create', '--filename=-'], { stdin: JSON.stringify(VOLUMES) });
  if (code !== 0) throw new Error(`the volumes cannot be created: ${stderr}`);
}

/** A Pod requires the service account of its namespace. */
async function canAdmitPods(kubectl: Kubectl): Promise<boolean> {
  return (await kubectl(['get', 'serviceaccount', 'default', '--namespace=default'])).code === 0;
}

async function isOk(url: string): Promise<boolean> {
  return (await fetch(url)).ok;
}

async function startContainerd(machine: Machine, files: NodeFiles): Promise<void> {
  const containerd = machine.start('containerd', 'containerd', [`--config=${files.containerd}`]);
  const source = join(import.meta.dirname, 'pause.c');
  const pause = await buildStaticImage({ source, reference: PAUSE_IMAGE }, join(machine.folder, 'pause'));
  const isServing = () => run('ctr', [`--address=${files.containerdSocket}`, 'version']).then(() => true);
  await ready(containerd, 'containerd', isServing);
  await importImage(files.containerdSocket, pause);
}

/** Writes the tokens, the keys of service accounts, and the certificate that the API server uses for the kubelet. */
async function writeCredentials(files: NodeFiles, credentials: readonly Credential[]): Promise<void> {
  await mkdir(files.certificates);
  await writeFile(files.tokens, formatTokenFile(credentials), { mode: 0o600 });
  await writeServiceAccountKeys({ privateKey: files.serviceAccountKey, publicKey: files.serviceAccountPublicKey });
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    files.kubeletClientKey,
  ];
  const subject = ['-subj', '/O=system:masters/CN=kube-apiserver', '-addext', 'extendedKeyUsage=clientAuth'];
  await run('openssl', ['req', '-x509', ...key, ...subject, '-days', '30', '-out', files.kubeletClient]);
}

/** containerd reads this file for each pull. */
async function trustRegistry({ registries }: NodeFiles, host: string, ca?: string): Promise<void> {
  const url = JSON.stringify(`${ca === undefined ? 'http' : 'https'}://${host}`);
  const authority = ca === undefined ? '' : `ca = ${JSON.stringify(ca)}\n`;
  await mkdir(join(registries, host), { recursive: true });
  // Without this table, containerd 1.6 uses https regardless of `server`.
  const text = `server = ${url}\n\n[host.${url}]\ncapabilities = ["pull", "resolve"]\n${authority}`;
  await writeFile(join(registries, host, 'hosts.toml'), text);
}
