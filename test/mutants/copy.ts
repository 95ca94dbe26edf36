import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { copyFiles } from '../support/copy-files.ts';
import { provideRedis, provideRedisCluster } from '../support/redis/provider.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Result, runStage, type Stage } from './stage.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** `tools/site` is missing because its packages are larger than everything else, and no mutant needs them. */
const COPIED = [
  'src',
  'test',
  'tools/cache.ts',
  'tools/generate',
  'tools/image',
  'config',
  'crds',
  'docs',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
];

/** Random tests try fewer cases by default. Nobody reads the shortest history that detects a mutant. */
const THOROUGH = { STEPS: '3000', SEEDS: '20', HISTORIES: '120', RUNS: '40', SHRINK: 'no' };

/** A copy of the project, in which files can be changed. */
export type ProjectCopy = {
  readonly path: string;
  /** Runs the tests of a stage, one stage at a time. @throws if the copy has been removed */
  readonly run: (stage: Stage, patienceMs: number) => Promise<Result>;
  /** Ends the tests and removes the copy. */
  readonly remove: () => Promise<void>;
};

type Servers = { readonly env: NodeJS.ProcessEnv; readonly stop: () => Promise<void> };

async function startServers(): Promise<Servers> {
  const redis = await provideRedis();
  try {
    const cluster = await provideRedisCluster();
    return {
      env: { TEST_REDIS_URL: redis.url, TEST_REDIS_CLUSTER_URL: cluster.url },
      stop: async () => {
        await Promise.all([redis.stop(), cluster.stop()]);
      },
    };
  } catch (error) {
    await redis.stop();
    throw error;
  }
}

/**
 * Provides a Redis and a Redis Cluster that no mutant has used. A Redis Cluster waits for two seconds before it accepts
 * commands, so the next one is started while the tests use the previous one.
 */
function freshServers() {
  let next: Promise<Servers> | undefined;
  let isStopped = false;
  const take = async (): Promise<Servers> => {
    const waiting = next ?? startServers();
    next = undefined;
    const servers = await waiting;
    if (isStopped) return servers;
    next = startServers();
    next.catch(() => {});
    return servers;
  };
  const stop = async () => {
    isStopped = true;
    await next?.then(
      servers => servers.stop(),
      () => {},
    );
  };
  return { take, stop };
}

/** Copies the project. Everything that the copy has started ends with this process. */
export async function copyProject(): Promise<ProjectCopy> {
  const { path, remove } = await temporaryFolder('mutants');
  await copyFiles(ROOT, COPIED, path);
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'));
  const servers = freshServers();
  let stopTests = () => {};
  let tests: Promise<unknown> = Promise.resolve();
  let isRemoved = false;
  const run = async (stage: Stage, patienceMs: number, env: NodeJS.ProcessEnv = {}) => {
    // It may have been removed while the tests were waiting for Redis.
    if (isRemoved) throw new Error('the copy of the project was removed');
    const result = runStage(path, stage, {
      patienceMs,
      env: { ...THOROUGH, ...env },
      // The report is removed with the copy, even if this process has ended before the tests.
      reportFolder: path,
      onStart: stop => {
        stopTests = stop;
      },
    });
    tests = result.catch(() => {});
    return result;
  };
  return {
    path,
    run: async (stage, patienceMs) => {
      if (stage[0] !== 'redis') return run(stage, patienceMs);
      const { env, stop } = await servers.take();
      try {
        return await run(stage, patienceMs, env);
      } finally {
        await stop();
      }
    },
    remove: async () => {
      isRemoved = true;
      stopTests();
      await Promise.all([tests, servers.stop()]);
      await remove();
    },
  };
}
