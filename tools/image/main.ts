import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Built, buildImage, buildRedisImage } from './build.ts';
import { CannotBuildError } from './command.ts';
import { updateLock } from './debian/packages.ts';
import { PLATFORMS } from './platforms.ts';
import { REDIS_SYSTEM } from './redis.ts';
import { NODE_SYSTEM } from './system.ts';

/**
 * Builds the container images of Sluice and Redis without a container engine and prints their digests and sizes.
 *
 * - `--output <folder>`: where to write the OCI layouts `image` and `redis-image` (default: `dist`)
 * - `--update-debian`: locks the versions that Debian currently has, and builds nothing
 */

const PROJECT = join(import.meta.dirname, '..', '..');

function describe({ release, digest, images }: Built, output: string): string {
  const platforms = images.map(({ platform, layers, digest: manifest }) => {
    const sizes = layers.map(({ name, size }) => `${name} ${megabytes(size)}`).join(', ');
    const total = megabytes(layers.reduce((sum, { size }) => sum + size, 0));
    return `${platform.name} ${manifest} ${total} MB compressed (${sizes})`;
  });
  return [
    `${relative('', output) || '.'} holds ${release.title} ${release.version}`,
    ...platforms,
    `index ${digest}`,
  ].join('\n');
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1);
}

try {
  const { values } = parseArgs({
    options: {
      output: { type: 'string', default: join(PROJECT, 'dist') },
      'update-debian': { type: 'boolean', default: false },
    },
  });
  if (values['update-debian']) {
    const names = new Set([...NODE_SYSTEM.packages, ...REDIS_SYSTEM.packages]);
    await updateLock(PLATFORMS, [...names].toSorted());
  } else {
    const [image, redisImage] = ['image', 'redis-image'].map(name => resolve(values.output, name)) as [string, string];
    process.stdout.write(`${describe(await buildImage(PROJECT, image), image)}\n`);
    process.stdout.write(`${describe(await buildRedisImage(PROJECT, redisImage), redisImage)}\n`);
  }
} catch (error) {
  if (!(error instanceof CannotBuildError)) throw error;
  process.stderr.write(`make image: ${error.message}\n`);
  process.exitCode = 1;
}
