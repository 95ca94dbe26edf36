import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { missingNodeFlags } from '../../src/node-flags.ts';
import { type ChildProcess, type Exit, startChild, waitUntilReady } from './child-process.ts';
import { freePorts } from './free-port.ts';
import { bundledProgram } from './program.ts';
import { type TemporaryFolder, temporaryFolder } from './temporary-folder.ts';

const COMMAND = join(import.meta.dirname, '..', '..', 'bin', 'sluice');
const START_DEADLINE_MS = 120_000;

export type SluiceRole = 'all' | 'controller' | 'facade' | 'ingress' | 'dispatcher';

export type SluiceOptions = {
  /** The path of a kubeconfig. Its cluster does not have to be reachable. */
  kubeconfig: string;
  redisUrl: string;
  /** The role. Defaults to `all`, which runs all roles in a single process. */
  role?: SluiceRole;
  /** Additional variables. Undefined removes a variable. */
  env?: Readonly<Record<string, string | undefined>>;
  /** If true, returns as soon as the process is running, without waiting until it is ready. */
  unready?: boolean;
  /** If true, runs `bin/sluice` instead of the bundle, e.g. to find out which packages are loaded. */
  unbundled?: boolean;
};

export type Sluice = {
  /** The id of the running process, which changes with a restart. */
  readonly pid: number;
  /** `http://127.0.0.1:<port>`, which is the same after a restart. */
  readonly ingressUrl: string;
  /** The facade's URL, which only responds if SLUICE_OIDC_ISSUERS and SLUICE_OIDC_AUDIENCE are set. */
  readonly facadeUrl: string;
  readonly opsUrl: string;
  /** The path of the log file. */
  readonly log: string;
  readonly running: () => boolean;
  /** Returns the status and the body of `/readyz`, or `[0, '']` if the process does not respond. */
  readonly readyz: () => Promise<readonly [status: number, body: string]>;
  /** Returns the parsed lines of the log so far, skipping lines which are not JSON. */
  readonly logLines: () => Promise<Record<string, unknown>[]>;
  /** Returns the total of all samples of a metric with these labels. */
  readonly metric: (name: string, labels?: Readonly<Record<string, string>>) => Promise<number>;
  /** Sends a signal (SIGKILL by default) and waits for the end of the process, except for SIGSTOP and SIGCONT. */
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>;
  /** Sends SIGTERM, and SIGKILL after 30 s. Resolves to the process's exit. Can be called twice. */
  readonly stop: () => Promise<Exit>;
  /** Kills the process if it is running, starts it using the same ports, and waits until it is ready. */
  readonly restart: () => Promise<void>;
};

/** The folder of this test process, with the root key of all roles and the logs. */
let shared: Promise<TemporaryFolder> | undefined;
let count = 0;

async function makeShared(): Promise<TemporaryFolder> {
  const folder = await temporaryFolder('sluice');
  await writeFile(join(folder.path, 'root.key'), randomBytes(32), { mode: 0o600 });
  return folder;
}

/** Returns the environment without any Sluice variables, because a developer's settings must not affect a test. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SLUICE_')));
}

/**
 * Starts the bundled program with one role (or all) on free loopback ports. Allows endpoints on 127.0.0.0/8 unless
 * `env` overrides it. All processes of a test run share a root key. It ends with this process, however that ends.
 *
 * @throws with the end of the log if it is not ready within 120 s
 */
export async function startSluice(options: SluiceOptions): Promise<Sluice> {
  shared ??= makeShared();
  const [{ path: folder }, program] = await Promise.all([shared, options.unbundled ? undefined : bundledProgram()]);
  const role = options.role ?? 'all';
  // Without its Node flags, the program would start Node again.
  const given = (options.env?.NODE_OPTIONS ?? process.env.NODE_OPTIONS ?? '').split(/\s+/);
  const flags = missingNodeFlags({
    word: role,
    given,
    limitBytes: process.constrainedMemory(),
    machineBytes: totalmem(),
  });
  const [command, args] = program === undefined ? [COMMAND, []] : [process.execPath, [...flags, program]];
  const [ingressPort = 0, opsPort = 0, facadePort = 0] = await freePorts(3);
  const log = join(folder, `${role}-${++count}.log`);
  const opsUrl = `http://127.0.0.1:${opsPort}`;
  const env: NodeJS.ProcessEnv = {
    ...cleanEnvironment(),
    // A role writes its compiled code to this folder as soon as it is loaded. Most processes are killed later.
    ...(program === undefined ? {} : { NODE_COMPILE_CACHE: join(dirname(program), 'compiled') }),
    KUBECONFIG: options.kubeconfig,
    SLUICE_REDIS_URL: options.redisUrl,
    SLUICE_INGRESS_PORT: `${ingressPort}`,
    SLUICE_OPS_PORT: `${opsPort}`,
    SLUICE_FACADE_PORT: `${facadePort}`,
    SLUICE_ROOT_KEY_FILE: join(folder, 'root.key'),
    SLUICE_ALLOWED_NETWORKS: '127.0.0.0/8',
    // No Service sends requests here, so no delay is needed.
    SLUICE_SHUTDOWN_DELAY_SECONDS: '0',
    ...options.env,
  };

  const readyz: Sluice['readyz'] = async () => {
    const answer = await fetch(`${opsUrl}/readyz`).catch(() => undefined);
    return answer === undefined ? [0, ''] : [answer.status, await answer.text()];
  };
  const isReady = async () => (await readyz())[0] === 200;
  async function start(): Promise<ChildProcess> {
    const child = startChild({ command, args: [...args, role], log, env });
    if (!options.unready) {
      await waitUntilReady(child, isReady, { name: `sluice ${role}`, deadlineMs: START_DEADLINE_MS });
    }
    return child;
  }

  let child = await start();
  async function kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    child.kill(signal);
    if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await child.exited;
  }
  return {
    get pid() {
      return child.pid;
    },
    ingressUrl: `http://127.0.0.1:${ingressPort}`,
    facadeUrl: `http://127.0.0.1:${facadePort}`,
    opsUrl,
    log,
    running: () => child.running(),
    readyz,
    logLines: async () => (await readFile(log, 'utf8')).split('\n').flatMap(parseLine),
    metric: async (name, labels = {}) => sumOf(await (await fetch(`${opsUrl}/metrics`)).text(), name, labels),
    kill,
    stop: async () => {
      await child.stop(30_000);
      return child.exited;
    },
    restart: async () => {
      await kill();
      child = await start();
    },
  };
}

function parseLine(line: string): Record<string, unknown>[] {
  try {
    return [JSON.parse(line) as Record<string, unknown>];
  } catch {
    return [];
  }
}

/** Returns the total of all samples of `name` with these labels, from Prometheus text format. */
function sumOf(text: string, name: string, labels: Readonly<Record<string, string>>): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (sample?.[1] !== name) continue;
    const wanted = Object.entries(labels).every(([label, value]) => sample[2]?.includes(`${label}="${value}"`));
    if (wanted) sum += Number(sample[3]);
  }
  return sum;
}
