import { defineConfig } from 'vitest/config';

/**
 * What a test needs is in its name: `*.test.ts` runs anywhere, `*.redis.test.ts` gets a real Redis and a Redis
 * Cluster, `*.kube.test.ts` a real API server; `test/system` and `test/e2e` get all of it.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/*.redis.test.ts', '**/*.kube.test.ts', 'test/system/**', 'test/e2e/**'],
        },
      },
      {
        test: {
          name: 'redis',
          include: ['src/**/*.redis.test.ts', 'test/**/*.redis.test.ts'],
          globalSetup: ['test/support/setup-redis.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'kube',
          include: ['src/**/*.kube.test.ts', 'test/**/*.kube.test.ts'],
          globalSetup: ['test/support/setup-kube.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'system',
          include: ['test/system/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          exclude: ['**/*.redis.test.ts', '**/*.kube.test.ts'],
          globalSetup: ['test/support/setup-binaries.ts'],
          testTimeout: 600_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
