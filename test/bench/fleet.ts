import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type ChildProcess, startChild, waitUntilReady } from '../support/child-process.ts';
import { freePort, freePorts } from '../support/free-port.ts';
import { bundledProgram } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const START_DEADLINE_MS = 60_000;

/** The environment of this process without the variables of Sluice. */
const OWN_ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SLUICE_')));

/** A benchmark process and its loopback ports. */
export interface Member {
  readonly pid: number;
  readonly port: number;
  /** The port for commands, or for /metrics. */
  readonly controlPort: number;
}

/** All processes of the benchmark. */
export interface Fleet {
  readonly rootKey: Buffer;
  readonly endpointPorts: readonly number[];
  readonly redis: Readonly<Record<'sluice' | 'xadd' | 'bullmq', RedisServer>>;
  readonly producer: Member;
  readonly receiver: Member;
  readonly bare: Member;
  readonly xadd: Member;
  readonly ingress: Member;
  readonly bullmqIngress: Member;
  readonly bullmqWorker: Member;
  /** Starts the dispatcher. Called after ingress has been measured without it. */
  readonly startPipeline: () => Promise<readonly Member[]>;
  readonly stop: () => Promise<void>;
}

function accepts(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** Starts Redis without automatic rewrites of the append-only file, which would slow down only one of the variants. */
function startBenchRedis(): Promise<RedisServer> {
  const extra = ['--auto-aof-rewrite-percentage', '0'];
  return startRedis({ appendonly: true, appendfsync: 'always', onDisk: true, extra });
}

/**
 * Starts the generator, the receiver, the baselines, a Redis server for each variant (with `appendfsync always`), and
 * the ingress role of Sluice.
 *
 * @param roleEnv returns further environment variables of a role
 */
export async function startFleet(
  endpoints: number,
  roleEnv: (role: string) => NodeJS.ProcessEnv = () => ({}),
): Promise<Fleet> {
  const folder = await temporaryFolder('bench');
  const rootKey = randomBytes(32);
  const rootKeyFile = join(folder.path, 'root.key');
  await writeFile(rootKeyFile, rootKey);
  const children: ChildProcess[] = [];
  const servers: RedisServer[] = [];

  async function start(
    name: string,
    port: number,
    options: Omit<Parameters<typeof startChild>[0], 'log'>,
  ): Promise<ChildProcess> {
    const child = startChild({ ...options, log: join(folder.path, `${name}.log`) });
    children.push(child);
    await waitUntilReady(child, () => accepts(port), { name, deadlineMs: START_DEADLINE_MS });
    return child;
  }

  /** Starts a program in this folder. It is ready when it listens on its control port. */
  async function program(file: string, port: number, controlPort: number, args: readonly number[]): Promise<Member> {
    const { pid } = await start(file.replace('/', '-'), controlPort, {
      command: process.execPath,
      args: [join(import.meta.dirname, `${file}.ts`), ...args.map(String)],
    });
    return { pid, port, controlPort };
  }

  async function role(name: string, redisUrl: string): Promise<Member> {
    const [port, controlPort] = (await freePorts(2)) as [number, number];
    const { pid } = await start(name, controlPort, {
      command: process.execPath,
      args: [await bundledProgram(), name],
      env: {
        ...OWN_ENVIRONMENT,
        SLUICE_REDIS_URL: redisUrl,
        SLUICE_INGRESS_PORT: String(port),
        SLUICE_OPS_PORT: String(controlPort),
        SLUICE_ROOT_KEY_FILE: rootKeyFile,
        SLUICE_ALLOWED_NETWORKS: '127.0.0.0/8',
        SLUICE_LOG_LEVEL: 'warn',
        ...roleEnv(name),
      },
    });
    return { pid, port, controlPort };
  }

  async function stop(): Promise<void> {
    await Promise.all(children.map(child => child.stop()));
    await Promise.all(servers.map(server => server.stop()));
    await folder.remove();
  }

  async function redisServer(): Promise<RedisServer> {
    const server = await startBenchRedis();
    servers.push(server);
    return server;
  }

  async function startAll(): Promise<Fleet> {
    const redis = { sluice: await redisServer(), xadd: await redisServer(), bullmq: await redisServer() };
    const endpointPorts = await freePorts(endpoints);
    const producerPort = await freePort();
    const receiverPort = await freePort();
    const barePort = await freePort();
    const xaddPort = await freePort();
    const [bullmqPort, bullmqControl, workerControl] = (await freePorts(3)) as [number, number, number];
    return {
      rootKey,
      endpointPorts,
      redis,
      producer: await program('producer', producerPort, producerPort, [producerPort]),
      receiver: await program('receiver', receiverPort, receiverPort, [receiverPort, ...endpointPorts]),
      bare: await program('servers/bare', barePort, barePort, [barePort]),
      xadd: await program('servers/xadd', xaddPort, xaddPort, [xaddPort, redis.xadd.port]),
      bullmqIngress: await program('servers/bullmq-ingress', bullmqPort, bullmqControl, [
        bullmqPort,
        redis.bullmq.port,
        bullmqControl,
      ]),
      bullmqWorker: await program('servers/bullmq-worker', workerControl, workerControl, [
        redis.bullmq.port,
        workerControl,
        ...endpointPorts,
      ]),
      ingress: await role('ingress', redis.sluice.url),
      startPipeline: async () => [await role('dispatcher', redis.sluice.url)],
      stop,
    };
  }

  return startAll().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
}
