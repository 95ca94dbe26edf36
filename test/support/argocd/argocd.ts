import { chmod, copyFile, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type ChildProcess, startChild, waitUntilReady } from '../child-process.ts';
import { freePorts } from '../free-port.ts';
import { ensureBinaries, moduleFolder } from '../kubernetes/binaries.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { startRedis } from '../redis/server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { ARGOCD_NAMESPACE, installArgoCd } from './install.ts';

const START_DEADLINE_MS = 120_000;
/** The number of seconds after which Argo CD compares each Application again, which defaults to 120. */
const RESYNC_SECONDS = 10;
/** Reads the signature of a commit. The repository server runs it for each commit. */
const VERIFIER = 'git-verify-wrapper.sh';

export interface ArgoCd {
  /** The paths of the logs, by program. */
  readonly logs: Readonly<Record<'repo-server' | 'application-controller', string>>;
  /** Stops both programs and their Redis and removes their files. Safe to call twice. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts the real Argo CD: its repository server and its application controller, with a separate Redis. They end with
 * this process, for any reason. Applications use the cluster as `https://kubernetes.default.svc`.
 * @param options.settings files that patch the `argocd-cm` ConfigMap
 * @throws MissingBinaries; an Error with the end of the log if a program is not ready within two minutes
 */
export async function startArgoCd(
  cluster: Pick<Cluster, 'kubectl' | 'kubeconfig'>,
  options: { readonly settings?: readonly string[] } = {},
): Promise<ArgoCd> {
  const [{ argocd, helm }, source] = await Promise.all([ensureBinaries(['argocd', 'helm']), moduleFolder('argocd')]);
  const [folder, redis] = await Promise.all([temporaryFolder('argocd'), startRedis()]);
  const [port = 0, repoMetrics = 0, controllerMetrics = 0] = await freePorts(3);
  const children: ChildProcess[] = [];
  const stop = async (): Promise<void> => {
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(children.map(({ exited }) => exited));
    await redis.stop();
    await folder.remove();
  };

  const bin = join(folder.path, 'bin');
  const temporary = join(folder.path, 'tmp');
  const env = {
    ...process.env,
    PATH: `${bin}:${process.env['PATH']}`,
    HOME: folder.path,
    TMPDIR: temporary,
    ARGOCD_APP_CONF_PATH: folder.path,
    KUBECONFIG: cluster.kubeconfig,
    ARGOCD_NAMESPACE,
    ARGOCD_GPG_ENABLED: 'false',
    // Behaves as if it was running in the cluster of KUBECONFIG.
    ARGOCD_FAKE_IN_CLUSTER: 'true',
  };
  /** A single binary which selects its role using its name. */
  async function start(role: keyof ArgoCd['logs'], metricsPort: number, args: readonly string[]): Promise<void> {
    const command = join(bin, `argocd-${role}`);
    await symlink(argocd, command);
    const redisAddress = `127.0.0.1:${redis.port}`;
    const child = startChild({
      command,
      args: ['--redis', redisAddress, '--metrics-port', `${metricsPort}`, '--loglevel', 'info', ...args],
      log: join(folder.path, `${role}.log`),
      env,
    });
    children.push(child);
    const isReady = async () => (await fetch(`http://127.0.0.1:${metricsPort}/healthz`)).ok;
    await waitUntilReady(child, isReady, { name: `argocd-${role}`, deadlineMs: START_DEADLINE_MS, everyMs: 200 });
  }

  try {
    await Promise.all([bin, temporary].map(path => mkdir(path)));
    await symlink(helm, join(bin, 'helm'));
    // Files in the module cache are not executable.
    await copyFile(join(source, 'hack', VERIFIER), join(bin, VERIFIER));
    await chmod(join(bin, VERIFIER), 0o755);
    await installArgoCd(cluster, join(source, 'manifests'), options.settings);
    const local = ['--address', '127.0.0.1', '--metrics-address', '127.0.0.1'];
    // The repository can be a folder outside the folder of Argo CD.
    await start('repo-server', repoMetrics, [...local, '--port', `${port}`, '--allow-oob-symlinks']);
    const repositories = ['--repo-server', `127.0.0.1:${port}`];
    const resync = ['--app-resync', `${RESYNC_SECONDS}`, '--app-resync-jitter', '0'];
    const access = ['--namespace', ARGOCD_NAMESPACE, '--kubeconfig', cluster.kubeconfig];
    // Otherwise, Applications would only have a combined health for all objects.
    const health = ['--persist-resource-health'];
    await start('application-controller', controllerMetrics, [...access, ...repositories, ...resync, ...health]);
  } catch (error) {
    await stop();
    throw error;
  }
  const logOf = (role: keyof ArgoCd['logs']) => join(folder.path, `${role}.log`);
  return {
    logs: { 'repo-server': logOf('repo-server'), 'application-controller': logOf('application-controller') },
    stop,
  };
}
