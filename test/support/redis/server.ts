import { execFile } from 'node:child_process';
import { access, constants, statfs } from 'node:fs/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { repairAppendOnlyFile } from '../../../src/commands/append-only-file.ts';
import { type ChildProcess, startChild, waitUntilReady } from '../child-process.ts';
import { freePort } from '../free-port.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { writeUsers } from './users.ts';

const run = promisify(execFile);

const NEEDED_MAJOR = 7;
const START_DEADLINE_MS = 30_000;

/** A file system in memory, where fsync is free. Killing Redis does not lose any data there, unlike a power failure. */
const MEMORY = '/dev/shm';
/** The free space that the servers of a run require. Containers often have less. */
const ROOM_BYTES = 4 * 1024 ** 3;

/** The signals that do not end the process. */
const LEAVES_RUNNING: ReadonlySet<NodeJS.Signals> = new Set(['SIGSTOP', 'SIGCONT', 'SIGHUP']);

/** Thrown if there is no suitable redis-server. The message lists all ways to get a Redis. */
export class MissingRedis extends Error {
  override readonly name = 'MissingRedis';
}

export type RedisOptions = {
  /** Keeps an append-only file. By default, data is not stored, so a restart removes it. */
  appendonly?: boolean;
  /** The time of the fsync. Defaults to `always`, as in production. */
  appendfsync?: 'always' | 'everysec' | 'no';
  /** The memory limit in Redis format, such as `64mb`. Above it, Redis refuses writes (`noeviction`). */
  maxmemory?: string;
  /**
   * An existing folder for the data, which is kept. By default, this is a temporary folder in memory, which is removed
   * by `stop()`.
   */
  dir?: string;
  /** Uses a temporary folder on the disk so that each fsync takes its actual time. */
  onDisk?: boolean;
  /** Additional arguments of redis-server, such as `['--cluster-enabled', 'yes']`. */
  extra?: readonly string[];
  /** Creates the users of Sluice, see `users.ts`, with these additional rules. */
  users?: readonly string[];
  /** Additional environment variables of redis-server. */
  env?: Readonly<Record<string, string>>;
};

export type RedisServer = {
  /** `redis://127.0.0.1:<port>`, which is the same after a restart. */
  readonly url: string;
  readonly port: number;
  /** The id of the running process, which changes with a restart. */
  readonly pid: number;
  /**
   * Sends a signal (SIGKILL by default) and waits for the end of the process. SIGSTOP and SIGCONT return immediately.
   */
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>;
  /**
   * Kills the process if it is running, repairs its append-only file, starts it using the same port and data, and waits
   * until it responds. Without `repair`, this is a restart of only the container, which does not repair the file.
   */
  readonly restart: (options?: { readonly repair: boolean }) => Promise<void>;
  /** Stops the process and removes its temporary folder. Can be called twice. */
  readonly stop: () => Promise<void>;
  /**
   * Sends a command using a separate connection.
   * @throws an error response of Redis
   */
  readonly command: (name: string, ...args: (string | number | Buffer)[]) => Promise<unknown>;
};

let required: Promise<void> | undefined;

/** Checks once that `redis-server` 7.0 or newer is on PATH. @throws MissingRedis with what was found */
export function requireRedisServer(): Promise<void> {
  return (required ??= checkRedisServer());
}

async function checkRedisServer(): Promise<void> {
  const version = await run('redis-server', ['--version']).then(
    ({ stdout }) => /v=(\d+)\.[\d.]+/.exec(stdout),
    () => null,
  );
  if (version !== null && Number(version[1]) >= NEEDED_MAJOR) return;
  const found = version === null ? 'redis-server is not on PATH' : `redis-server on PATH is too old (${version[0]})`;
  throw new MissingRedis(
    [
      `No Redis for the tests: ${found}.`,
      'Any one of these helps:',
      "  - install redis-server 7.0 or newer ('make setup' does it on Debian and Ubuntu when it is root);",
      '  - set TEST_REDIS_URL, and TEST_REDIS_CLUSTER_URL (nodes separated by commas), to servers that may be emptied;',
      '  - start a Docker daemon: Redis is then run in a container.',
    ].join('\n'),
  );
}

/** Sends a command using a new connection, and closes it. */
export async function redisCommand(
  port: number,
  name: string,
  ...args: (string | number | Buffer)[]
): Promise<unknown> {
  const options = { lazyConnect: true, retryStrategy: () => null, disableClientInfo: true };
  const client = new Redis(port, '127.0.0.1', options);
  // connect() has already reported the refused connection.
  client.on('error', () => {});
  try {
    await client.connect();
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}

/** The settings that the documentation requires, in addition to the settings of all test servers. */
export const DOCUMENTED = ['--lazyfree-lazy-expire', 'yes', '--lazyfree-lazy-server-del', 'yes'];

function serverArguments(port: number, dir: string, options: RedisOptions): string[] {
  const basic = {
    port: `${port}`,
    bind: '127.0.0.1',
    dir,
    save: '',
    'maxmemory-policy': 'noeviction',
    appendonly: options.appendonly ? 'yes' : 'no',
    appendfsync: options.appendfsync ?? 'always',
  };
  return [
    ...Object.entries(basic).flatMap(([name, value]) => [`--${name}`, value]),
    ...(options.maxmemory === undefined ? [] : ['--maxmemory', options.maxmemory]),
    ...(options.extra ?? []),
  ];
}

/** Returns `MEMORY` if it has enough space. */
async function memoryFolder(): Promise<string | undefined> {
  try {
    await access(MEMORY, constants.W_OK);
    const { bavail, bsize } = await statfs(MEMORY);
    return bavail * bsize >= ROOM_BYTES ? MEMORY : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Starts a Redis on a free loopback port. It ends with this process, for any reason.
 * @throws MissingRedis; an Error with the end of the log if it does not respond within 30 s
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  await requireRedisServer();
  const folder = await temporaryFolder('redis', options.onDisk ? undefined : await memoryFolder());
  const port = await freePort();
  const users = options.users ? await writeUsers(folder.path, options.users) : [];
  const dir = options.dir ?? folder.path;
  const args = [...serverArguments(port, dir, options), ...users];

  const start = async (): Promise<ChildProcess> => {
    const started = startChild({
      command: 'redis-server',
      args,
      log: `${folder.path}/redis.log`,
      env: { ...process.env, ...options.env },
    });
    // While Redis is loading its file, it responds to PING with an error.
    await waitUntilReady(started, async () => (await redisCommand(port, 'PING')) === 'PONG', {
      name: 'redis-server',
      deadlineMs: START_DEADLINE_MS,
      everyMs: 20,
    });
    return started;
  };

  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    child.kill(signal);
    if (!LEAVES_RUNNING.has(signal)) await child.exited;
  };

  let child = await start().catch(async (error: unknown) => {
    await folder.remove();
    throw error;
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid;
    },
    kill,
    restart: async ({ repair } = { repair: true }) => {
      await kill();
      if (repair) repairAppendOnlyFile(dir);
      child = await start();
    },
    stop: async () => {
      await kill();
      await folder.remove();
    },
    command: (name, ...rest) => redisCommand(port, name, ...rest),
  };
}
