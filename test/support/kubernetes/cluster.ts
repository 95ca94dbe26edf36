import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeSelfSigned } from '../certificates.ts';
import { type ChildProcess, startChild, waitUntilReady } from '../child-process.ts';
import { freePorts } from '../free-port.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { CLUSTER_BINARIES, ensureBinaries } from './binaries.ts';
import { apiServerArguments, clusterFiles, controllerManagerArguments, etcdArguments } from './components.ts';
import {
  ADMIN,
  formatKubeconfig,
  formatTokenFile,
  isSameUser,
  issueToken,
  type User,
  writeServiceAccountKeys,
} from './credentials.ts';
import { GOGC, type Kubectl, kubectlFor } from './kubectl.ts';
import { httpsStatus } from './readiness.ts';

const START_DEADLINE_MS = 120_000;

/** With a single thread, etcd takes a fifth less CPU time because its goroutines don't wake up other threads. */
const GO_SETTINGS: Readonly<Record<string, NodeJS.ProcessEnv>> = { etcd: { GOMAXPROCS: '1' } };

export type Cluster = {
  /** The path of the administrator's kubeconfig (group `system:masters`). */
  readonly kubeconfig: string;
  /** `https://127.0.0.1:<port>`, which is the same after a restart. */
  readonly url: string;
  readonly kubectl: Kubectl;
  /** Sends a signal (SIGKILL by default) and waits until the API server has ended. etcd keeps the data. */
  readonly killApiServer: (signal?: NodeJS.Signals) => Promise<void>;
  /** Starts the API server again using the same port and data, and waits until it is ready. */
  readonly startApiServer: () => Promise<void>;
  /** Stops a started cluster and removes its files, or returns a borrowed cluster. Can be called twice. */
  readonly stop: () => Promise<void>;
};

/** A cluster whose processes are child processes of this process. */
export type StartedCluster = Cluster & {
  /** The URL of its etcd, `http://127.0.0.1:<port>`. */
  readonly etcdUrl: string;
  /** The cache folder of kubectl for this cluster. */
  readonly kubectlCache: string;
  /** Runs the controllers of `controllerManager` until the returned function is called. */
  readonly startControllerManager: () => Promise<() => Promise<void>>;
  /**
   * Returns the path of a kubeconfig for a user who only has the permissions granted by RBAC. For users that
   * `startCluster` did not get, this restarts the API server (about 4 s; clients are disconnected).
   */
  readonly userKubeconfig: (name: string, groups?: readonly string[]) => Promise<string>;
};

type Start = (component: string, command: string, args: readonly string[]) => ChildProcess;
type Components = Awaited<ReturnType<typeof prepare>>;

/** Selects the programs, folder, ports, and credentials of a cluster. */
async function prepare(users: readonly User[]) {
  const binaries = await ensureBinaries(CLUSTER_BINARIES);
  const folder = await temporaryFolder('kube');
  const [etcdPort = 0, etcdPeer = 0, apiServerPort = 0] = await freePorts(3);
  const admin = issueToken(ADMIN);
  return {
    binaries,
    folder,
    files: clusterFiles(folder.path),
    ports: { etcd: etcdPort, etcdPeer, apiServer: apiServerPort },
    url: `https://127.0.0.1:${apiServerPort}`,
    admin,
    credentials: [admin, ...users.map(issueToken)],
  };
}

/** Starts processes which log to the folder of the cluster, and kills all of them at the same time. */
function createProcesses({ files, folder }: Components): { readonly start: Start; readonly stop: () => Promise<void> } {
  const children: ChildProcess[] = [];
  return {
    start: (component, command, args) => {
      const env = { GOGC, ...GO_SETTINGS[component], ...process.env };
      const child = startChild({ command, args, log: files.log(component), env });
      children.push(child);
      return child;
    },
    // The files in the folder do not require an orderly shutdown.
    stop: async () => {
      for (const child of children.toReversed()) child.kill('SIGKILL');
      await Promise.all(children.map(({ exited }) => exited));
      await folder.remove();
    },
  };
}

/** Starts and kills the API server. Each start reads the credentials again. */
function createApiServer({ binaries, files, ports, url, admin, credentials }: Components, start: Start) {
  let server: ChildProcess | undefined;
  return {
    startApiServer: async (): Promise<void> => {
      if (server?.running()) return;
      await writeFile(files.tokens, formatTokenFile(credentials), { mode: 0o600 });
      server = start('kube-apiserver', binaries['kube-apiserver'], apiServerArguments(files, ports));
      await waitUntilReady(server, async () => (await httpsStatus(`${url}/readyz`, admin.token)) === 200, {
        name: 'kube-apiserver',
        deadlineMs: START_DEADLINE_MS,
      });
    },
    killApiServer: async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
      server?.kill(signal);
      await server?.exited;
    },
  };
}

/**
 * Starts a Kubernetes API server on free loopback ports, with RBAC and without nodes. It ends with this process, for
 * any reason.
 * @param options.controllerManager also runs the controllers for namespaces, garbage collection, service accounts, and
 * aggregated roles. Without it, nothing is collected, and deleted namespaces stay `Terminating`
 * @throws MissingBinaries; an Error with the end of the log if a component is not ready within 120 s
 */
export async function startCluster(
  options: { controllerManager?: boolean; users?: readonly User[] } = {},
): Promise<StartedCluster> {
  const components = await prepare(options.users ?? []);
  const { binaries, files, folder, ports, url, admin, credentials } = components;
  const { start, stop } = createProcesses(components);
  const { startApiServer, killApiServer } = createApiServer(components, start);

  const startControllerManager = async (): Promise<() => Promise<void>> => {
    const { 'kube-controller-manager': binary } = await ensureBinaries(['kube-controller-manager']);
    const manager = start('kube-controller-manager', binary, controllerManagerArguments(files));
    return async () => {
      manager.kill('SIGKILL');
      await manager.exited;
    };
  };

  const writeKubeconfig = async (path: string, token: string): Promise<string> => {
    const cluster = { server: url, 'certificate-authority-data': await readFile(files.authority, 'base64') };
    await writeFile(path, formatKubeconfig({ cluster, user: { token } }), { mode: 0o600 });
    return path;
  };

  const userKubeconfig = async (name: string, groups: readonly string[] = []): Promise<string> => {
    let credential = credentials.find(known => isSameUser(known, { name, groups }));
    if (credential === undefined) {
      credential = issueToken({ name, groups });
      credentials.push(credential);
      await killApiServer();
      await startApiServer();
    }
    return writeKubeconfig(join(folder.path, `user-${credentials.indexOf(credential)}.kubeconfig`), credential.token);
  };

  try {
    await mkdir(files.certificates);
    await Promise.all([
      // The API server would create an RSA key, whose handshakes take several times as long.
      writeSelfSigned({ cert: files.authority, key: files.servingKey }, 'kube-apiserver', 'IP:127.0.0.1'),
      writeServiceAccountKeys({ privateKey: files.serviceAccountKey, publicKey: files.serviceAccountPublicKey }),
    ]);
    start('etcd', binaries.etcd, etcdArguments(files, ports));
    await startApiServer();
    await writeKubeconfig(files.kubeconfig, admin.token);
    if (options.controllerManager) await startControllerManager();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    kubeconfig: files.kubeconfig,
    url,
    kubectl: kubectlFor({ binary: binaries.kubectl, kubeconfig: files.kubeconfig, cache: files.kubectlCache }),
    etcdUrl: `http://127.0.0.1:${ports.etcd}`,
    kubectlCache: files.kubectlCache,
    startControllerManager,
    userKubeconfig,
    killApiServer,
    startApiServer,
    stop,
  };
}
