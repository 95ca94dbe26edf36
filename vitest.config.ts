import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take long, or mostly wait: begun first so that none is left alone at the end. */
const LONGEST = [
  'exactness',
  'scale/turns',
  'drift',
  'delivery-status',
  'term-without-redis',
  'uninstall',
  'converge',
  'backlog',
  'paused',
  'replicas',
  'tour',
  'kills',
  'scale/tenant',
  'deletion',
  'story',
  'control/kubectl',
  'mistakes/start',
  'kubectl-twin',
  'facade-faults',
  'apiserver',
  'leaders',
  'field-managers',
  'facade-replicas',
  'authorization',
  'restored-status',
  'slow-stop',
  'rest/generator',
  'invitations',
  'readme',
  'mistakes/rest',
  'intrusion',
  'workspaces',
  'gate',
  'telemetry',
  'old-installation',
  'rival-installations',
  'mistakes/kubectl',
  'root-key-rotation',
  'facade-races',
  'readiness',
  'limits',
  'tokens',
  'failure/start',
  'redis-clock',
  'delivery/consent',
  'delivery/verify',
  'account-limits',
  'one-slot.slow',
  'installations.slow',
  'redis/cluster.redis',
  'fence.redis',
  'idle.redis',
  'push-connection.redis',
  'model/histories.redis',
  'chaos/cluster.redis',
  'redis-shares.redis',
  'short.redis',
  'parts/alone.redis',
  'random.redis',
  'late-client.redis',
  'explain-agreement.redis',
  'replay-sweep.redis',
  'part-faults.redis',
  'audit.redis',
  'redis/replicas.redis',
  'histories.redis',
  'part-metrics.redis',
  'sentinel.redis',
  'part-absence.redis',
  'install-page',
  'rivals.kube',
  'cluster.kube',
  'reflector.kube',
  'rbac.kube',
  'manifests-samples.kube',
  'cluster-pool.kube',
];

/**
 * Files of the system that wait for most of their time: for a pass of the audit, a timeout, a Lease, an idle minute.
 */
const WAITING = [
  'control/blocks',
  'control/converge',
  'control/deletion',
  'control/invitation-limits',
  'control/invitations',
  'control/paused',
  'control/permissions',
  'control/recreated',
  'control/uninstall',
  'delivery/backlog',
  'delivery/delivery-status',
  'delivery/instances',
  'failure/apiserver',
  'failure/drift',
  'failure/facade-faults',
  'failure/leaders',
  'failure/redis-away',
  'failure/rival-installations',
  'failure/term-without-redis',
].map(name => `test/system/${name}.test.ts`);

const GIVEN_REDIS = process.env.TEST_REDIS_URL ?? process.env.TEST_REDIS_CLUSTER_URL;

/**
 * Counts commands and CPU time, which do not depend on other files. Only the full size needs the machine for itself.
 */
const TENANT = 'test/scale/tenant.test.ts';

/**
 * Files that need the machine for themselves: they run after all others. `exactness` and `turns` run at the same time
 * because each of them leaves part of it idle. `barrier` measures times, so it follows.
 */
const ALONE = [
  ...(process.env.SCALE ? [TENANT] : []),
  'test/scale/turns.test.ts',
  'test/system/failure/barrier.test.ts',
  'test/system/delivery/exactness.test.ts',
];

/** Files that only `make test-scale` and `make test-hostile` run. */
const LARGE = ['test/scale/draining.test.ts', 'test/hostile/hostile.test.ts'];

/**
 * The files of a worker share a process: most of them would take longer to load what they test than to test it. More
 * room for new objects saves a tenth of the CPU time because most of them are garbage at the next collection.
 */
const SHARED = { isolate: false, execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=64'] };

/** Each file has a cluster and a Redis of its own. */
const SYSTEM = { globalSetup: ['test/support/setup-clusters.ts'], testTimeout: 600_000, hookTimeout: 180_000 };

/** Vitest remembers how long each file took; a fresh clone knows nothing. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      LONGEST.findIndex(name => moduleId.endsWith(`/${name}.test.ts`)) + 1 || LONGEST.length + 1;
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/**
 * What a test needs is in its name: `*.test.ts` runs anywhere, `*.redis.test.ts` gets a real Redis and a Redis
 * Cluster, `*.kube.test.ts` a real API server, `test/chart` the same and Helm; `test/system` and `test/e2e` get all.
 * `test/image` builds the container image. `*.slow.test.ts` runs anywhere, but takes too long for `make check`.
 */
export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    // The sum of `make test` shows the first line of each failure: what differs must be in it.
    chaiConfig: { truncateThreshold: 400 },
    projects: [
      {
        test: {
          name: 'unit',
          ...SHARED,
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [
            '**/*.{slow,redis,kube}.test.ts',
            'test/{system,e2e,chart,image,site,node,gitops}/**',
            TENANT,
            ...ALONE,
            ...LARGE,
          ],
          // Exhaustive and random tests take seconds, more on a machine that others use as well.
          testTimeout: 30_000,
          // Many files mostly wait for timers.
          maxWorkers: Math.max(4, availableParallelism() - 1),
        },
      },
      {
        test: {
          name: 'slow',
          ...SHARED,
          include: ['src/**/*.slow.test.ts', 'test/**/*.slow.test.ts'],
          testTimeout: 60_000,
          maxWorkers: Math.max(2, availableParallelism() - 1),
        },
      },
      {
        test: {
          name: 'redis',
          ...SHARED,
          include: ['src/**/*.redis.test.ts', 'test/**/*.redis.test.ts'],
          globalSetup: ['test/support/setup-redis.ts'],
          // Some go through every order of two programs: half a minute, more where others use the machine.
          testTimeout: 240_000,
          hookTimeout: 60_000,
          // Each worker has a Redis of its own, which takes the other half of a core; one that was given is for one alone.
          // Three more than that: every third file waits, for Sentinels or for a dispatcher that is given up.
          maxWorkers: GIVEN_REDIS ? 1 : 3 + Math.max(2, Math.floor(availableParallelism() / 2)),
        },
      },
      {
        test: {
          name: 'kube',
          ...SHARED,
          include: ['src/**/*.kube.test.ts', 'test/**/*.kube.test.ts'],
          globalSetup: ['test/support/setup-kube.ts'],
          testTimeout: 180_000,
          hookTimeout: 120_000,
          // Some start an API server of their own and wait for it.
          maxWorkers: Math.max(3, availableParallelism() - 1),
        },
      },
      {
        test: {
          name: 'image',
          include: ['test/image/**/*.test.ts'],
          globalSetup: ['test/image/setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          name: 'site',
          include: ['test/site/**/*.test.ts'],
          testTimeout: 120_000,
          // Installs the packages that build the site.
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'chart',
          ...SHARED,
          include: ['test/chart/**/*.test.ts'],
          globalSetup: ['test/support/setup-kube.ts', 'test/chart/setup.ts'],
          testTimeout: 180_000,
          // Helm is built at the first run.
          hookTimeout: 600_000,
          // They wait for the API server and for Helm.
          maxWorkers: Math.max(2, availableParallelism() - 1),
        },
      },
      {
        test: {
          name: 'system',
          include: ['test/system/**/*.test.ts', 'test/e2e/**/*.test.ts', TENANT],
          exclude: ['**/*.redis.test.ts', '**/*.kube.test.ts', ...ALONE, ...WAITING],
          ...SYSTEM,
          ...SHARED,
          maxWorkers: 5,
        },
      },
      {
        test: {
          name: 'waiting',
          include: WAITING,
          ...SYSTEM,
          ...SHARED,
          maxWorkers: 4,
        },
      },
      {
        test: {
          name: 'scale',
          include: ALONE,
          ...SYSTEM,
          // With the full size, one after the other.
          maxWorkers: process.env.SCALE ? 1 : 2,
        },
      },
      {
        test: {
          name: 'large',
          include: LARGE,
          ...SYSTEM,
          maxWorkers: 1,
        },
      },
      {
        test: {
          name: 'node',
          include: ['test/node/*.test.ts'],
          testTimeout: 120_000,
          // The first start builds the binaries.
          hookTimeout: 900_000,
          // A node uses both cores while it starts.
          maxWorkers: 1,
        },
      },
      {
        test: {
          name: 'outages',
          include: ['test/node/long/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 900_000,
          maxWorkers: 1,
        },
      },
      {
        test: {
          name: 'gitops',
          include: ['test/gitops/**/*.test.ts'],
          exclude: ['**/*.slow.test.ts'],
          testTimeout: 600_000,
          // Argo CD is built at the first run.
          hookTimeout: 1_800_000,
          // Those with a cluster and an Argo CD use both cores.
          maxWorkers: 1,
        },
      },
    ],
  },
});
