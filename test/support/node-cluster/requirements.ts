import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const PROGRAMS = ['containerd', 'ctr', 'runc', 'iptables', 'conntrack', 'ip', 'nsenter', 'unshare', 'gcc', 'openssl'];

/** The folders of the plugins in the Debian package and in the project's own archives. */
const PLUGIN_FOLDERS = ['/usr/lib/cni', '/opt/cni/bin'];

/** Returns the reason why this machine cannot run a node (including a solution), or undefined if it can. */
export function nodeRefusal(): string | undefined {
  if (process.platform !== 'linux') return 'a node needs Linux';
  if (process.getuid?.() !== 0) return 'a node needs root, for namespaces and containers: run `sudo make test-node`';
  const missing: string[] = PROGRAMS.filter(program => !isOnPath(program));
  if (pluginFolder() === undefined) missing.push('the CNI plugins');
  if (missing.length === 0) return undefined;
  return `a node needs ${missing.join(', ')}: on Debian, test/support/node-cluster/install.sh installs them`;
}

/** Returns the folder containing the CNI plugins. */
export function pluginFolder(): string | undefined {
  return PLUGIN_FOLDERS.find(folder => existsSync(join(folder, 'bridge')));
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some(folder => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
