import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ChildProcess, type Exit, startChild } from '../support/child-process.ts';

/** The isolation of a process in an image: namespaces (like in a container), or only a root folder. */
export type Isolation = 'namespaces' | 'chroot';

const NAMESPACES = ['--mount', '--pid', '--fork', '--kill-child'];

/** Returns the strongest isolation available on this machine, or undefined. */
export function findIsolation(): Isolation | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if (spawnSync('unshare', [...NAMESPACES, 'true']).status === 0) return 'namespaces';
  return spawnSync('chroot', ['/', 'true']).status === 0 ? 'chroot' : undefined;
}

/**
 * Makes the root file system read-only and runs the program as process 1. The mounts are removed along with their
 * namespace.
 */
const ENTER = [
  'root=$1; user=$2; volume=$3; shift 3',
  'mount --bind "$root" "$root" && mount -o remount,bind,ro "$root" && mount -t proc proc "$root/proc"',
  '[ -z "$volume" ] || mount -t tmpfs -o mode=1777 tmpfs "$root$volume"',
  'exec chroot --userspec="$user" --groups= "$root" "$@"',
].join('\n');

/** An unpacked image, along with the files that a container engine and Kubernetes add. */
export type Container = {
  readonly root: string;
  readonly isolation: Isolation;
  /** The entry point of the image. */
  readonly entrypoint: readonly string[];
  /** The environment variables of the image, as `NAME=value`. */
  readonly env: readonly string[];
  /** The path of an empty volume that is writable for all users. With `chroot`, there is no volume. */
  readonly volume?: string;
};

/** The path of the root key in a container, and of a kubeconfig whose API server does not respond. */
export const ROOT_KEY = '/etc/sluice/root.key';
export const KUBECONFIG = '/etc/sluice/kubeconfig';

const CLUSTER = { cluster: { server: 'https://127.0.0.1:1' }, name: 'none' };

/** Adds the mount points and files used by the tests. */
export async function prepareContainer(root: string): Promise<void> {
  await mkdir(join(root, 'proc'));
  await mkdir(join(root, 'etc', 'sluice'));
  await writeFile(join(root, ROOT_KEY), 'k'.repeat(32), { mode: 0o444 });
  const context = { context: { cluster: 'none', user: 'none' }, name: 'none' };
  const config = { clusters: [CLUSTER], users: [{ name: 'none', user: {} }], contexts: [context] };
  const text = JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...config, 'current-context': 'none' });
  await writeFile(join(root, KUBECONFIG), text, { mode: 0o444 });
}

function commandFor(
  { root, isolation, volume = '' }: Container,
  user: string,
  args: readonly string[],
): [string, string[]] {
  return isolation === 'namespaces'
    ? ['unshare', [...NAMESPACES, 'sh', '-c', ENTER, 'sh', root, user, volume, ...args]]
    : ['chroot', [`--userspec=${user}`, '--groups=', root, ...args]];
}

function environment(container: Container, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  // The PATH of the machine is used to find the programs that enter the container.
  const image = Object.fromEntries(
    container.env.map(each => each.split(/=(.*)/s, 2)).filter(([name]) => name !== 'PATH'),
  );
  return { PATH: process.env.PATH, ...image, ...env };
}

/** Runs the entry point with arguments until it ends. @param user `<uid>:<gid>` */
export function runToEnd(container: Container, user: string, args: readonly string[]) {
  const [command, all] = commandFor(container, user, [...container.entrypoint, ...args]);
  const { status, stdout, stderr } = spawnSync(command, all, { env: environment(container, {}), encoding: 'utf8' });
  return { status, stdout, stderr };
}

export type Program = ChildProcess & {
  /** Returns the process id of the program on this machine. */
  readonly programPid: () => number;
  /** Sends SIGTERM only to the program, as a container engine does. */
  readonly terminate: () => Promise<Exit>;
};

/** Starts the entry point in the container. */
export function startContainer(
  container: Container,
  options: {
    readonly user: string;
    readonly args: readonly string[];
    readonly env: NodeJS.ProcessEnv;
    readonly log: string;
  },
): Program {
  const [command, args] = commandFor(container, options.user, [...container.entrypoint, ...options.args]);
  const child = startChild({ command, args, log: options.log, env: environment(container, options.env) });
  const programPid = () => {
    if (container.isolation === 'chroot') return child.pid;
    return Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim());
  };
  return {
    ...child,
    programPid,
    terminate: () => {
      process.kill(programPid(), 'SIGTERM');
      return child.exited;
    },
  };
}
