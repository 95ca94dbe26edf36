import { spawn } from 'node:child_process';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ensureBinaries } from '../kubernetes/binaries.ts';
import { stopOnSignal } from '../stop-signal.ts';
import { importImage } from './images.ts';
import { NODE_BINARIES, startNode } from './node.ts';
import { isAlive, sweepRemains } from './remains.ts';
import { nodeRefusal } from './requirements.ts';

/**
 * A node for use by hand:
 *
 *     bin/node test/support/node-cluster/main.ts up | down | import <image> [<name>] | run -- <command> …
 *
 * `up` leaves a node running in the background, with one node for each checkout. `run` runs a command with the
 * variables KUBECONFIG and NODE_HOST (the host's address as seen from Pods) and with kubectl on PATH; if no node is up,
 * it starts one for the time of the command.
 */

const USAGE = 'usage: main.ts up | down | import <image> [<name>] | run -- <command> …';

const CACHE = join(import.meta.dirname, '..', '..', '..', '.cache');
const STATE = join(CACHE, 'node.json');
const LOG = join(CACHE, 'node.log');

const STOP_DEADLINE_MS = 30_000;

type State = { readonly pid: number; readonly kubeconfig: string; readonly host: string; readonly socket: string };

async function readState(): Promise<State | undefined> {
  const state: State | undefined = await readFile(STATE, 'utf8').then(JSON.parse, () => undefined);
  return state !== undefined && isAlive(state.pid) ? state : undefined;
}

async function up(): Promise<void> {
  const found = await readState();
  if (found !== undefined) return print(found);
  const refusal = nodeRefusal();
  if (refusal !== undefined) throw new Error(refusal);
  await ensureBinaries(NODE_BINARIES);
  await mkdir(CACHE, { recursive: true });
  await rm(STATE, { force: true });
  const log = await open(LOG, 'w');
  const server = spawn(process.execPath, [import.meta.filename, 'serve'], {
    stdio: ['ignore', log.fd, log.fd],
    detached: true,
  });
  server.unref();
  await log.close();
  for (;;) {
    const state = await readState();
    if (state !== undefined) return print(state);
    if (server.exitCode !== null) throw new Error((await readFile(LOG, 'utf8')).trim());
    await delay(100);
  }
}

function print({ kubeconfig, host }: State): void {
  process.stdout.write(`export KUBECONFIG=${kubeconfig}\nexport NODE_HOST=${host}\n`);
}

/** Runs a node until it receives a SIGTERM. */
async function serve(): Promise<void> {
  const node = await startNode();
  stopOnSignal(
    async () => {
      await rm(STATE, { force: true });
      await node.stop();
    },
    { interruptIsSuccess: () => true },
  );
  const { kubeconfig, network, containerdSocket: socket } = node;
  const state: State = { pid: process.pid, kubeconfig, host: network.host, socket };
  await writeFile(STATE, JSON.stringify(state), { mode: 0o600 });
  // The children do not prevent this process from ending.
  setInterval(() => {}, 2 ** 30);
}

async function down(): Promise<void> {
  const state = await readState();
  if (state !== undefined) {
    process.kill(state.pid, 'SIGINT');
    const deadline = performance.now() + STOP_DEADLINE_MS;
    while (isAlive(state.pid) && performance.now() < deadline) await delay(50);
    if (isAlive(state.pid)) process.kill(state.pid, 'SIGKILL');
  }
  await rm(STATE, { force: true });
  await sweepRemains();
}

async function run([command, ...args]: readonly string[]): Promise<number> {
  if (command === undefined) throw new Error(USAGE);
  const { kubectl } = await ensureBinaries(['kubectl']);
  const found = await readState();
  const node = found === undefined ? await startNode() : undefined;
  const kubeconfig = found?.kubeconfig ?? node?.kubeconfig;
  const host = found?.host ?? node?.network.host;
  const child = spawn(command, args, {
    stdio: 'inherit',
    env: {
      ...process.env,
      KUBECONFIG: kubeconfig,
      NODE_HOST: host,
      PATH: [dirname(kubectl), process.env.PATH].join(delimiter),
    },
  });
  // A terminal sends its signals to the command as well.
  const stop = node && stopOnSignal(node.stop);
  const code = await new Promise<number>(resolve => {
    child.once('error', error => {
      process.stderr.write(`${error.message}\n`);
      resolve(127);
    });
    child.once('exit', exitCode => resolve(exitCode ?? 128));
  });
  await stop?.();
  return code;
}

async function main([verb, ...args]: readonly string[]): Promise<number> {
  switch (verb) {
    case 'up':
      await up();
      return 0;
    case 'serve':
      await serve();
      return 0;
    case 'down':
      await down();
      return 0;
    case 'run':
      return run(args[0] === '--' ? args.slice(1) : args);
    case 'import': {
      const state = await readState();
      const [image, name] = args;
      if (state === undefined) throw new Error('no node is up: run `main.ts up` first');
      if (image === undefined) throw new Error(USAGE);
      for (const { reference, digest } of await importImage(state.socket, image, name)) {
        process.stdout.write(`${reference} ${digest}\n`);
      }
      return 0;
    }
    default:
      throw new Error(USAGE);
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
