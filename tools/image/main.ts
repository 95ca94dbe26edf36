import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Built, buildImage } from './build.ts';
import { CannotBuildError } from './command.ts';
import { updateLock } from './debian.ts';
import { PLATFORMS } from './platforms.ts';

/**
 * Builds the container image of Sluice without a container engine, and prints its digest and size.
 *
 * - `--output <folder>`: where to write the OCI layout (default: `dist/image`)
 * - `--update-debian`: locks the versions that Debian currently has, and builds nothing
 */

const PROJECT = join(import.meta.dirname, '..', '..');

function describe({ release, digest, images }: Built, output: string): string {
  const platforms = images.map(({ platform, layers, digest: manifest }) => {
    const sizes = layers.map(({ name, size }) => `${name} ${megabytes(size)}`).join(', ');
    const total = megabytes(layers.reduce((sum, { size }) => sum + size, 0));
    return `${platform.name} ${manifest} ${total} MB compressed (${sizes})`;
  });
  return [`${relative('', output) || '.'} holds Sluice ${release.version}`, ...platforms, `index ${digest}`].join('\n');
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1);
}

try {
  const { values } = parseArgs({
    options: {
      output: { type: 'string', default: join(PROJECT, 'dist', 'image') },
      'update-debian': { type: 'boolean', default: false },
    },
  });
  if (values['update-debian']) await updateLock(PLATFORMS);
  else {
    const output = resolve(values.output);
    process.stdout.write(`${describe(await buildImage(PROJECT, output), output)}\n`);
  }
} catch (error) {
  if (!(error instanceof CannotBuildError)) throw error;
  process.stderr.write(`make image: ${error.message}\n`);
  process.exitCode = 1;
}
