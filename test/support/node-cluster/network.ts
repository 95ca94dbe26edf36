import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * The addresses of a node. All of them are in 10.<number>.0.0/16, to which the host has a route while the node is
 * running.
 */
export type Network = {
  /** The host's end of the pair of interfaces. Pods connect to servers of the host at this address. */
  readonly host: string;
  /** The node's end of the pair: API server, DNS server, and NodePorts. */
  readonly node: string;
  readonly pods: string;
  readonly services: string;
  /** The first address of the Services, which belongs to `kubernetes.default`. */
  readonly apiService: string;
  readonly all: string;
};

/** The numbers available for a node because only few networks use these parts of 10.0.0.0/8. */
export const NUMBERS: readonly number[] = Array.from({ length: 50 }, (_, index) => 200 + index);

/**
 * The minimum prefix length of a route that is kept. Parts of larger networks, such as the 10.0.0.0/8 of a VPN, may be
 * replaced.
 */
const SHORTEST_KEPT_PREFIX = 12;

/** Returns the name of a node's interface, cgroup, and folder. An interface's name has at most 15 characters. */
export function nameOf(number: number): string {
  return `sluice-node-${number}`;
}

export function networkOf(number: number): Network {
  const prefix = `10.${number}`;
  return {
    host: `${prefix}.0.1`,
    node: `${prefix}.0.2`,
    pods: `${prefix}.1.0/24`,
    services: `${prefix}.2.0/24`,
    apiService: `${prefix}.2.1`,
    all: `${prefix}.0.0/16`,
  };
}

/**
 * Returns whether no route of the host ends in 10.<number>.0.0/16. @param routes destinations, such as `10.1.2.0/24`
 */
export function isFree(number: number, routes: readonly string[]): boolean {
  return !routes.some(route => {
    const [address = '', length = '32'] = route.split('/');
    const bits = Number(length);
    if (bits < SHORTEST_KEPT_PREFIX) return false;
    const [first, second] = address.split('.').map(Number);
    const shift = 16 - Math.min(bits, 16);
    return first === 10 && Number(second) >> shift === number >> shift;
  });
}

/** Reads the destinations of the host's IPv4 routes from all tables. */
export async function readRoutes(): Promise<string[]> {
  const { stdout } = await run('ip', ['-4', '-json', 'route', 'show', 'table', 'all']);
  return (JSON.parse(stdout) as { dst: string }[]).map(({ dst }) => dst);
}

/** Creates the interface of the host, and its other end `eth0` in the network namespace of a process. */
export async function connectHost(number: number, pid: number): Promise<void> {
  const name = nameOf(number);
  const { host, node, all } = networkOf(number);
  await run('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid)]);
  await run('ip', ['address', 'add', `${host}/30`, 'dev', name]);
  await run('ip', ['link', 'set', name, 'up']);
  await run('ip', ['route', 'add', all, 'via', node]);
}
